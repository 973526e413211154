"""Of the labels before an entry, the fold reads those that can still count: the verdicts stay what
they are of all labels."""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as holds_for
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core.entries import Labelled, Settled
from litellm_messplus.core.verdict import Given, Rule
from litellm_messplus.records import Record
from litellm_messplus.runtime.vocabulary import PRECEDENCE, LabelKind
from litellm_messplus.store import entries, log
from tests.support.builders import given, label, request, served_call
from tests.support.folding import read

SOURCES = {"feedback": LabelKind.FEEDBACK, "judge": LabelKind.JUDGE}
SOURCES |= {"check:a": LabelKind.CHECK, "check:b": LabelKind.CHECK}


@st.composite
def labels(draw: st.DrawFn) -> Given:
    source = draw(st.sampled_from(sorted(SOURCES)))
    value, weight = draw(st.sampled_from([0.0, 0.5, 1.0])), draw(st.sampled_from([0.0, 0.3, 1.0]))
    return Given(SOURCES[source], source, value, weight)


def as_records(request_id: str, given_labels: Sequence[Given], ends_after: int) -> list[Record]:
    found: list[Record] = [
        label(
            request_id,
            each.value,
            label_id=f"{request_id}/{number}",
            kind=each.kind,
            source=each.source,
            weight=each.weight,
        )
        for number, each in enumerate(given_labels)
    ]
    found.insert(ends_after, served_call(request_id))
    return [request(request_id), *found]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@holds_for(
    given_labels=st.lists(labels(), max_size=10),
    ends_after=st.integers(0, 10),
    page=st.sampled_from([1, 2, 3, 2000]),
    order=st.lists(st.sampled_from(PRECEDENCE), min_size=1, unique=True).map(tuple),
)
async def test_what_stands_makes_the_verdicts_of_all_labels(
    database: AsyncEngine,
    given_labels: list[Given],
    ends_after: int,
    page: int,
    order: tuple[LabelKind, ...],
) -> None:
    """Before and after every label, and at the call's end, under any rule, in any pages."""
    before = await log.head(database)
    ends_after = min(ends_after, len(given_labels))
    await log.append(database, as_records(f"r{before}", given_labels, ends_after))
    rule = Rule(order)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(entries, "PAGE", page)
        found = [
            each async for each in entries.read_entries(database, before, await log.head(database))
        ]

    judged = [each for each in found if isinstance(each, Labelled)]
    assert [each.given for each in judged] == given_labels
    for number, each in enumerate(judged):
        assert rule.verdict(each.earlier) == rule.verdict(given_labels[:number])
        assert rule.verdict((*each.earlier, each.given)) == rule.verdict(given_labels[: number + 1])
    (call,) = (each for each in found if isinstance(each, Settled))
    assert rule.verdict(call.given) == rule.verdict(given_labels[:ends_after])


async def test_of_many_verdicts_each_sources_newest_is_read(database: AsyncEngine) -> None:
    """With all of them read back for each, a fold of 2,000 on one call took 50 s."""
    given_labels = [given(number % 2) for number in range(300)]
    given_labels[10] = given(0.5, kind=LabelKind.JUDGE)
    await log.append(database, as_records("r1", given_labels, 0))
    await log.append(database, [label(value=1.0, label_id="weightless", weight=0.0)])
    await log.append(database, [label(label_id="last")])

    head = await log.head(database)
    *_, last = await read(database, 0, head)
    (alone,) = await read(database, head - 1, head)

    assert last == alone
    assert last["earlier"] == (given_labels[10], given_labels[-1])


async def test_labels_of_another_call_are_not_read(database: AsyncEngine) -> None:
    await log.append(database, [request(), served_call(), label(value=0.0, label_id="served")])
    await log.append(database, [label(value=1.0, number=1, label_id="explored")])
    (explored,) = await read(database, 3, 4)
    assert explored["earlier"] == ()
