"""What the log knows of a judge: what a day cost, and how it agrees with the users."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.labels.judge.budget import Spent
from litellm_messplus.records import GradingRecord, LabelRecord, Record, served_call_id
from litellm_messplus.runtime.vocabulary import GradingStatus, LabelKind
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.judging import agreements, spent
from tests.support.builders import request

T = TypeVar("T")
MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def read(records: Sequence[Record], query: Callable[[AsyncConnection], Awaitable[T]]) -> T:
    """What the query finds in a log of these records."""

    async def story(folder: str) -> T:
        database = create_engine(f"sqlite+aiosqlite:///{Path(folder) / 'messplus.db'}")
        try:
            await migrate(database)
            await log.append(database, records)
            async with database.connect() as connection:
                return await query(connection)
        finally:
            await database.dispose()

    with TemporaryDirectory() as folder:
        return asyncio.run(story(folder))


def grading(request_id: str, **values: object) -> GradingRecord:
    record = GradingRecord(
        grading_id=f"g-{request_id}",
        request_id=request_id,
        created_at=MIDNIGHT,
        judge="critic",
        status=GradingStatus.GRADED,
        answers=1,
        cost=0.5,
    )
    return replace(record, **values)  # type: ignore[arg-type]


def label(request_id: str, kind: LabelKind, value: float, number: int, **values: object) -> Record:
    record = LabelRecord(
        label_id=f"{request_id}-{kind}-{number}",
        call_id=served_call_id(request_id),
        request_id=request_id,
        created_at=MIDNIGHT + number * SECOND,
        kind=kind,
        source=kind.value,
        value=value,
    )
    return replace(record, **values)  # type: ignore[arg-type]


def test_a_days_spending_is_that_of_the_day_and_the_zoo_whatever_came_of_it() -> None:
    records: list[Record] = [
        request("a", zoo="one"),
        request("b", zoo="two"),
        grading("a", grading_id="1", created_at=MIDNIGHT - SECOND),
        grading("a", grading_id="2", created_at=MIDNIGHT),
        grading("a", grading_id="3", status=GradingStatus.NONSENSE),
        grading("a", grading_id="4", status=GradingStatus.FAILURE, cost=None),
        grading("a", grading_id="5", judge="another", created_at=MIDNIGHT + timedelta(hours=23)),
        grading("a", grading_id="6", created_at=MIDNIGHT + timedelta(days=1)),
        grading("b", grading_id="7", cost=None),
    ]

    found = read(records, lambda connection: spent(connection, MIDNIGHT.date()))

    day = MIDNIGHT.date()
    assert found == {"one": Spent(day, 4, 1.5), "two": Spent(day, 1, 0.0)}


@dataclass(frozen=True)
class Judged:
    """One request: what the judge and the user said of it in turn, and who graded."""

    judge_said: tuple[float, ...]
    user_said: tuple[float, ...]
    zoo: str
    judge: str
    weight: float


VALUES = st.lists(st.sampled_from([0.0, 0.4, 0.5, 1.0]), max_size=2).map(tuple)
JUDGED = st.builds(
    Judged,
    VALUES,
    VALUES,
    st.sampled_from(["one", "two"]),
    st.sampled_from(["critic", "other"]),
    st.sampled_from([0.0, 1.0]),
)


def by_hand(cases: Sequence[Judged], window: int) -> dict[tuple[str, str], Agreement]:
    pairs: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for case in cases:
        if case.judge_said and case.user_said:
            found = (case.judge_said[-1] >= 0.5, case.user_said[-1] >= 0.5)
            pairs.setdefault((case.zoo, case.judge), []).append(found)
    return {
        key: Agreement(
            *(
                said[-window:].count(cell)
                for cell in [(True, True), (True, False), (False, True), (False, False)]
            )
        )
        for key, said in pairs.items()
    }


@settings(max_examples=12)
@given(st.lists(JUDGED, max_size=12), st.integers(1, 6))
def test_agreement_is_of_the_newest_that_both_judged(cases: list[Judged], window: int) -> None:
    """The newest word of each counts, labels of weight 0 too; and a failed grading adds nothing."""
    records: list[Record] = []
    for number, case in enumerate(cases):
        request_id = f"r{number:02}"
        records.append(request(request_id, zoo=case.zoo))
        records.append(grading(request_id, grading_id=f"f{number}", status=GradingStatus.FAILURE))
        records.append(grading(request_id, judge=case.judge))
        at = 10 * number
        for place, value in enumerate(case.judge_said):
            judged = label(request_id, LabelKind.JUDGE, value, at + place, weight=case.weight)
            records.append(judged)
        for place, value in enumerate(case.user_said):
            records.append(label(request_id, LabelKind.FEEDBACK, value, at + place))

    found = read(records, lambda connection: agreements(connection, window))

    assert found == by_hand(cases, window)
