"""A log of any length: a block written through the store, and copies of it made in SQL.

A copy has its own ids and positions, and is whole days older than the newest, so that a year is
filled evenly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.core.decision import Reason
from litellm_messplus.records import (
    Asker,
    CallRecord,
    GradingRecord,
    LabelRecord,
    Record,
    RequestRecord,
    exploration_call_id,
    served_call_id,
)
from litellm_messplus.runtime.vocabulary import (
    CallRole,
    CallStatus,
    CostSource,
    GradingStatus,
    LabelKind,
)
from litellm_messplus.store import hours, log
from litellm_messplus.store.tables import (
    calls,
    gradings,
    labels,
    log_head,
    outcomes,
    requests,
)

BLOCK = 1000
"""Requests written through the store."""
DAYS = 365
"""Days over which a long log is spread."""
AT_ONCE = 100
"""Copies of the block per transaction."""
LEVELS = ("default", "gold")
MODELS = ("model-0", "model-1", "model-2")
KEYS = 40

OWN_IDS = {
    "requests": ("request_id", "litellm_call_id"),
    "calls": ("call_id", "request_id", "response_id"),
    "labels": ("label_id", "call_id", "request_id"),
    "gradings": ("grading_id", "request_id"),
    "outcomes": ("request_id",),
}
"""Columns whose values differ in every copy."""
TIMES = ("created_at", "ended_at")


@dataclass(frozen=True, slots=True)
class Scaled:
    """A log of so many requests, with the id of the newest, and the end of the log."""

    requests: int
    newest: str
    position: int


async def make_log(database: AsyncEngine, count: int, zoo: str) -> Scaled:
    """Fill an empty log with ``count`` requests, a multiple of ``BLOCK``, their calls, labels on
    half of them, gradings of some, and the sums of it all."""
    copies = count // BLOCK
    if count < BLOCK or count % BLOCK:
        raise SystemExit(f"--requests: given {count}; allowed: a multiple of {BLOCK}")
    a_day = -(-copies // DAYS)
    block = list(_block(zoo, datetime.now(UTC) - timedelta(days=(copies - 1) // a_day)))
    await log.append(database, block)
    for start in range(1, copies, AT_ONCE):
        async with database.begin() as connection:
            for copy in range(start, min(start + AT_ONCE, copies)):
                await _copy(connection, copy, len(block), copy // a_day)
    position = copies * len(block)
    async with database.begin() as connection:
        await connection.execute(update(log_head).values(position=position))
    await hours.settle(database, position)
    newest = _prefix(copies - 1) if copies > 1 else ""
    return Scaled(count, f"{newest}r{BLOCK - 1:05}", position)


def _prefix(copy: int) -> str:
    return f"{copy:07}-"


async def _copy(connection: AsyncConnection, copy: int, size: int, days: int) -> None:
    """Copy all rows of the block once more, so many days later."""
    for table in (requests, calls, labels, gradings, outcomes):
        changed = {name: f"'{_prefix(copy)}' || {name}" for name in OWN_IDS[table.name]}
        changed |= {"position": f"position + {copy * size}"}
        changed |= {"t": f"t + {copy * BLOCK}"} if table is requests else {}
        changed |= {name: _later(connection, name, days) for name in TIMES if name in table.c}
        changed |= {"day": _later_day(connection, days)} if table is outcomes else {}
        names = [column.name for column in table.columns]
        values = ", ".join(changed.get(name, name) for name in names)
        await connection.exec_driver_sql(
            f"INSERT INTO {table.name} ({', '.join(names)}) "
            f"SELECT {values} FROM {table.name} WHERE position <= {size} ORDER BY position"
        )


def _later(connection: AsyncConnection, column: str, days: int) -> str:
    if connection.dialect.name == "sqlite":
        return f"strftime('%Y-%m-%d %H:%M:%f000', {column}, '+{days} days')"
    return f"{column} + INTERVAL '{days} days'"


def _later_day(connection: AsyncConnection, days: int) -> str:
    return f"date(day, '+{days} days')" if connection.dialect.name == "sqlite" else f"day + {days}"


def _block(zoo: str, ending: datetime) -> Iterator[Record]:
    """Make the requests of a day up to ``ending``, each followed by all its records."""
    random = Random(0)
    for number in range(BLOCK):
        at = ending - timedelta(minutes=1 + BLOCK - number)
        request = _request(zoo, number, at, random)
        yield request
        served = _call(request, 0, random.choice(MODELS), is_failure=random.random() < 0.02)
        yield served
        if request.is_exploration:
            yield _call(request, 1, random.choice(MODELS), is_failure=False)
        if number % 2:
            yield _label(request, LabelKind.FEEDBACK, float(random.random() < 0.8))
        if number % 50 == 1:
            yield _label(request, LabelKind.JUDGE, float(random.random() < 0.8))
            yield _grading(request)


def _request(zoo: str, number: int, at: datetime, random: Random) -> RequestRecord:
    costs = {name: 0.001 * 3**place for place, name in enumerate(MODELS)}
    return RequestRecord(
        request_id=f"r{number:05}",
        created_at=at,
        zoo=zoo,
        service_level=LEVELS[number % 10 == 0],
        expected_t=number + 1,
        alpha=0.8,
        policy="adaptive",
        asker=Asker(
            f"litellm-r{number:05}", f"key-{random.randrange(KEYS)}", None, "acompletion", False
        ),
        encoder="hashed-ngrams-3",
        features=None,
        prompt_characters=random.randrange(4000),
        estimated_cost=costs,
        estimated_satisfaction={name: 0.7 + 0.1 * place for place, name in enumerate(MODELS)},
        queue=random.uniform(-3.0, 3.0),
        chosen=random.choice(MODELS),
        largest=MODELS[-1],
        is_exploration=random.random() < 0.1,
        exploration_probability=0.1,
        reason=Reason.AHEAD,
        decision_seconds=random.uniform(1e-4, 1e-3),
        encode_seconds=1e-4,
    )


def _call(request: RequestRecord, place: int, candidate: str, *, is_failure: bool) -> CallRecord:
    return CallRecord(
        call_id=exploration_call_id(request.request_id, place),
        request_id=request.request_id,
        ended_at=request.created_at + timedelta(seconds=2),
        role=CallRole.EXPLORATION if place else CallRole.SERVED,
        status=CallStatus.FAILURE if is_failure else CallStatus.SUCCESS,
        candidate=candidate,
        deployment_id=f"{candidate}-0",
        model=f"openai/{candidate}",
        response_id=f"chatcmpl-{request.request_id}-{place}",
        prompt_tokens=200,
        completion_tokens=80,
        cost=None if is_failure else request.estimated_cost[candidate],
        cost_source=CostSource.UNKNOWN if is_failure else CostSource.MEASURED,
        seconds=1.2,
    )


def _label(request: RequestRecord, kind: LabelKind, value: float) -> LabelRecord:
    return LabelRecord(
        label_id=f"{request.request_id}-{kind}",
        call_id=served_call_id(request.request_id),
        request_id=request.request_id,
        created_at=request.created_at + timedelta(seconds=30),
        kind=kind,
        source=kind.value,
        value=value,
    )


def _grading(request: RequestRecord) -> GradingRecord:
    return GradingRecord(
        grading_id=f"{request.request_id}-grading",
        request_id=request.request_id,
        created_at=request.created_at + timedelta(seconds=20),
        judge="judge",
        status=GradingStatus.GRADED,
        answers=1,
        cost=0.0004,
        zoo_cost=0.0004,
    )
