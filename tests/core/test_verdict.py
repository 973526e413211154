"""Of all labels on one call one counts, by a rule; in the fold and in SQL it is the same one."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as holds_for
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core.head import Label
from litellm_messplus.core.verdict import Given, Rule
from litellm_messplus.learning.projections import save_rules
from litellm_messplus.runtime.vocabulary import PRECEDENCE, LabelKind
from litellm_messplus.store import log
from tests.support.builders import POLICIES, build_state, build_zoo, given, label, labelled, request

FEEDBACK, CHECK, JUDGE = PRECEDENCE
RULE = Rule()

kinds = st.sampled_from(LabelKind)


@st.composite
def labels(draw: st.DrawFn) -> Given:
    kind = draw(kinds)
    source = draw(st.sampled_from(["check:a", "check:b"])) if kind is CHECK else kind.value
    value, weight = draw(st.sampled_from([0.0, 0.5, 1.0])), draw(st.sampled_from([0.0, 0.3, 1.0]))
    return Given(kind, source, value, weight)


A, B = "check:a", "check:b"


@pytest.mark.parametrize(
    ("logged", "verdict"),
    [
        ([], None),
        *(
            (order, Label(1.0))
            for stronger, weaker in pairwise(PRECEDENCE)
            for order in (
                [given(1.0, kind=stronger), given(0.0, kind=weaker)],
                [given(0.0, kind=weaker), given(1.0, kind=stronger)],
            )
        ),
        ([given(1.0, kind=CHECK, source=A)], Label(1.0)),
        # An answer must pass every check.
        ([given(1.0, 1.0, CHECK, A), given(0.0, 0.5, CHECK, B)], Label(0.0, 0.5)),
        ([given(0.0, 0.5, CHECK, B), given(1.0, 1.0, CHECK, A)], Label(0.0, 0.5)),
        # Of two with the same value the first counts, unless it is replaced.
        ([given(0.0, 1.0, CHECK, A), given(0.0, 0.5, CHECK, B)], Label(0.0)),
        (
            [given(0.0, 1.0, CHECK, A), given(0.0, 0.3, CHECK, B), given(0.0, 0.5, CHECK, A)],
            Label(0.0, 0.3),
        ),
        ([given(0.0), given(1.0)], Label(1.0)),
        # A label of no weight is in the log alone.
        ([given(1.0, weight=0.0)], None),
        ([given(0.0, kind=JUDGE), given(1.0, 0.0, JUDGE)], Label(0.0)),
    ],
)
def test_the_verdict_is(logged: list[Given], verdict: Label | None) -> None:
    assert RULE.verdict(logged) == verdict


def test_another_order_is_another_verdict_and_a_kind_left_out_does_not_count() -> None:
    logged = [given(1.0), given(0.0, kind=JUDGE)]
    assert Rule((JUDGE, FEEDBACK)).verdict(logged) == Label(0.0)
    assert Rule((FEEDBACK,)).verdict([given(0.0, kind=JUDGE)]) is None


@holds_for(st.lists(labels(), max_size=8), labels())
def test_more_labels_never_take_a_verdict_away(logged: list[Given], more: Given) -> None:
    assert RULE.verdict(logged) is None or RULE.verdict([*logged, more]) is not None


@pytest.mark.parametrize("policy", POLICIES)
@holds_for(logged=st.lists(labels(), min_size=1, max_size=6))
def test_a_request_counts_once_with_its_verdict(policy: str, logged: list[Given]) -> None:
    """The queue after all of them is the one after the verdict alone, given by a user."""
    many, once = (build_state(build_zoo(policy=policy)) for _ in range(2))
    for state in (many, once):  # a debt that no verdict can empty
        for number in range(5):
            state.apply(labelled(0.0, request_id=f"before-{number}"))
    for number, each in enumerate(logged):
        many.apply(labelled(0.0, given=each, earlier=tuple(logged[:number])))
    verdict = RULE.verdict(logged)
    if verdict is not None:
        once.apply(labelled(verdict.value, weight=verdict.weight))
    assert many.policy.queue("default") == pytest.approx(once.policy.queue("default"), abs=1e-9)
    assert many.policy.answered_requests("default") == once.policy.answered_requests("default")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@holds_for(data=st.data())
async def test_sql_shows_the_folds_verdict(database: AsyncEngine, data: st.DataObject) -> None:
    """The labels that count, under the default rule and under any that a start has written down."""
    logged = data.draw(st.lists(labels(), max_size=6))
    order = data.draw(st.one_of(st.none(), st.lists(kinds, min_size=1, unique=True).map(tuple)))
    request_id = f"r{await log.head(database)}"
    zoo = f"zoo-{request_id}"
    if order is not None:
        await save_rules(database, {zoo: order})
    records = [
        label(request_id, each.value, label_id=f"{request_id}/{number}", **_fields(each))
        for number, each in enumerate(logged)
    ]
    await log.append(database, [request(request_id, zoo=zoo), *records])

    async with database.connect() as connection:
        shown = await connection.execute(
            text("SELECT value, weight FROM labels WHERE counts AND request_id = :request_id"),
            {"request_id": request_id},
        )
        found = [Label(*row) for row in shown]
    verdict = Rule(order or PRECEDENCE).verdict(logged)
    assert found == ([] if verdict is None else [verdict])


def _fields(each: Given) -> dict[str, Any]:
    return {"kind": each.kind, "source": each.source, "weight": each.weight}
