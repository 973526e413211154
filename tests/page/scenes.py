"""What a zoo can look like on the page: nothing yet, some requests, watched, and an outage."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from litellm_messplus.records import (
    CallRecord,
    LabelRecord,
    Record,
    RequestRecord,
    exploration_call_id,
)
from litellm_messplus.runtime.vocabulary import (
    WARM_UP,
    CallRole,
    CallStatus,
    CostSource,
    Failure,
    LabelKind,
    level_before,
)
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.switching.modes import Arm, Trial
from tests.page.seeded import CANDIDATES, HOSTILE, LARGE, SMALL, traffic
from tests.support.builders import label

WATCHED, SERVED, FAILED = WARM_UP + 400, 10, 110
"""Requests of a watched zoo; those of an outage that were answered, and those that were not."""
PAUSE = timedelta(seconds=4)
"""Between two requests."""
FAILURE: dict[str, Any] = {
    "status": CallStatus.FAILURE,
    "failure": Failure.UPSTREAM,
    "cost": None,
    "cost_source": CostSource.UNKNOWN,
}
"""What differs in a call that failed."""


def make_scene(path: Path, records: list[Record]) -> str:
    """A SQLite file with these records; returns its URL."""
    url = f"sqlite+aiosqlite:///{path}"

    async def make() -> None:
        database = create_engine(url)
        await migrate(database)
        for start in range(0, len(records), 500):
            await log.append(database, records[start : start + 500])
        await database.dispose()

    asyncio.run(make())
    return url


def lately(count: int) -> list[Record]:
    """So many requests until now, one after the other, of one level, by friendly clients."""
    now, found = datetime.now(UTC), list[Record]()
    at, number = now, 0
    for record in traffic(count + len(HOSTILE), now):
        if isinstance(record, RequestRecord):
            number += 1
            if number > count:
                break
            at = now - PAUSE * (count + 1 - number)
            record = replace(record, created_at=at, service_level="default")
        elif isinstance(record, CallRecord):
            record = replace(record, ended_at=at + timedelta(seconds=record.seconds or 0.0))
        elif isinstance(record, LabelRecord):
            record = replace(record, created_at=at)
        found.append(record)
    return found


def outage() -> list[Record]:
    """Nearly every call fails, and no one judges what did not come."""
    return list(_failing(lately(SERVED + FAILED)))


def _failing(records: list[Record]) -> Iterator[Record]:
    number = 0
    for record in records:
        number += isinstance(record, RequestRecord)
        if number <= SERVED or isinstance(record, RequestRecord):
            yield record
        elif isinstance(record, CallRecord) and record.role == CallRole.SERVED:
            yield replace(record, **FAILURE, answer=None, error="503 from upstream")


def watched() -> list[Record]:
    """The largest serves, and every third request also calls what the router would choose, unseen;
    every twentieth fails."""
    return list(_watched(lately(WATCHED)))


def _watched(records: list[Record]) -> Iterator[Record]:
    random, number = Random(3), 0
    latest: RequestRecord | None = None
    for record in records:
        if isinstance(record, RequestRecord):
            number += 1
            latest = replace(
                record,
                service_level=level_before("default"),
                place=None,
                chosen=LARGE,
                is_exploration=number % 3 == 0,
                trial=Trial(
                    Arm.BEFORE,
                    would_choose=SMALL,
                    would_cost=CANDIDATES[SMALL][0],
                    sample_probability=0.3 if number % 3 == 0 else None,
                    conversation_draw=number / (len(records) + 1),
                ),
            )
            yield latest
        elif isinstance(record, CallRecord) and record.role == CallRole.SERVED:
            assert latest is not None
            if number % 20 == 0:
                yield replace(record, candidate=LARGE, **FAILURE)
                continue
            yield replace(
                record, candidate=LARGE, cost=CANDIDATES[LARGE][0] * random.uniform(0.6, 1.5)
            )
            if latest.is_exploration:
                call_id = exploration_call_id(record.request_id, 1)
                yield replace(
                    record,
                    call_id=call_id,
                    role=CallRole.EXPLORATION,
                    candidate=SMALL,
                    cost=CANDIDATES[SMALL][0],
                )
                own: dict[str, Any] = {"label_id": call_id, "call_id": call_id}
                own |= {"created_at": record.ended_at, "kind": LabelKind.JUDGE, "source": "judge"}
                yield label(record.request_id, float(random.random() < 0.7), **own)
        elif isinstance(record, LabelRecord) and number % 20 and latest is not None:
            yield replace(record, value=float(random.random() < 0.9))
