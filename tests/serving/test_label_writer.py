"""Labels of checks, and of what users do next, count as far as their key may move the promise."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain import labelling as module
from litellm_messplus.brain.influence import KeyInfluence
from litellm_messplus.brain.labelling import LabelWriter
from litellm_messplus.brain.messages import judged_request
from litellm_messplus.labels.key_pull import LabelContent
from litellm_messplus.labels.source import Cause, Finding
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.serving.reading import RequestReader
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.serving.surfaces.surface import CHAT_COMPLETIONS
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store import log
from litellm_messplus.store.tables import labels
from tests.support.builders import request, served_call
from tests.support.folding import build_journal

HOSTILE = Cause("zoo", "default", "mallory")


class Influence(KeyInfluence):
    """Where the database may be away for the first looks."""

    away = 0
    looks = 0

    async def may_count(
        self, cause: Cause, said: LabelContent, replaced: LabelContent | None = None
    ) -> bool:
        self.looks += 1
        if self.looks <= self.away:
            raise OperationalError("select", {}, Exception("away"))
        return await super().may_count(cause, said, replaced)


class Written:
    """A writer, and what it has written into the log."""

    def __init__(self, database: AsyncEngine, **settings: Any) -> None:
        zoo = {"alpha": 0.6, "labels": settings}
        known = MessplusSettings.model_validate({"zoos": {"zoo": zoo}})
        self.counters = Counters()
        self.journal = build_journal(database, counters=self.counters)
        self.influence = Influence(known, database, self.counters)
        self.writer = LabelWriter(self.journal, self.influence, self.counters)
        self._database = database

    async def weights(self) -> list[tuple[str, float]]:
        """The source and weight of every label, in the order of the log."""
        await self.writer.close()
        await self.journal.flush()
        query = select(labels.c.source, labels.c.weight).order_by(labels.c.position)
        async with self._database.connect() as connection:
            return [(row.source, row.weight) for row in await connection.execute(query)]


@pytest.fixture
async def written(database: AsyncEngine) -> AsyncIterator[Written]:
    built = Written(database)
    built.journal.start()
    yield built
    await built.journal.close()


def found(number: int, value: float, source: str, cause: Cause | None) -> Finding:
    kind = LabelKind(source.partition(":")[0])
    request_id = f"{cause.key_hash if cause else 'mallory'}{number}"
    return Finding(f"{request_id}.0", request_id, kind, source, value, 1.0, cause=cause)


async def fill(database: AsyncEngine) -> None:
    """Nine keys with ten requests each, and a tenth with thirty."""
    now = datetime.now(UTC)
    asked = {**{f"key{place}": 10 for place in range(9)}, "mallory": 30}
    await log.append(
        database,
        [
            record
            for key, requests in asked.items()
            for number in range(requests)
            for record in (
                request(f"{key}{number}", key_hash=key, created_at=now),
                served_call(f"{key}{number}"),
            )
        ],
    )


@pytest.mark.parametrize("source", ["check:own", "check:complete"])
async def test_what_a_key_has_labelled_beyond_its_pull_is_kept_and_does_not_count(
    database: AsyncEngine, written: Written, source: str
) -> None:
    await fill(database)
    for key in range(9):
        for number in range(10):
            cause = Cause("zoo", "default", f"key{key}")
            written.writer.report(found(number, float(number > 2), "check:own", cause))
    for number in range(30):
        written.writer.report(found(number, 0.0, source, HOSTILE))
    weights = await written.weights()
    assert [weight for _, weight in weights[:90]] == [1.0] * 90
    counting = [weight for _, weight in weights[90:]].count(1.0)
    assert 1 <= counting <= 8
    assert written.counters.as_dict() == {"verdicts_beyond_influence": 30 - counting}


async def test_what_no_client_sets_counts_and_nothing_is_looked_up(written: Written) -> None:
    for number in range(30):
        written.writer.report(found(number, 0.0, "judge", None))
    assert await written.weights() == [("judge", 1.0)] * 30
    assert written.influence.looks == 0


async def test_while_the_database_is_away_labels_wait_in_their_order(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)
    written.influence.away = 3
    for source in ("check:complete", "check:json_schema"):
        written.writer.report(found(1, 0.0, source, HOSTILE))
    assert await written.weights() == [("check:complete", 1.0), ("check:json_schema", 1.0)]
    assert written.counters.as_dict() == {"database_failures": 3}


async def test_no_more_labels_wait(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    for number in range(5):
        written.writer.report(found(number, 1.0, "check:complete", HOSTILE))
    assert len(await written.weights()) == 2
    assert written.counters.as_dict() == {"labels_left_out": 3}


async def test_a_stop_does_not_wait_for_a_database_that_stays_away(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.0)
    written.influence.away = 10**9
    written.writer.report(found(1, 1.0, "check:complete", HOSTILE))
    await asyncio.sleep(0)
    assert await written.weights() == []
    assert written.counters.as_dict()["labels_left_out"] == 1


async def test_switched_off_everything_counts_without_a_look(database: AsyncEngine) -> None:
    off = Written(database, key_pull=1.0)
    off.journal.start()
    for number in range(30):
        off.writer.report(found(number, 0.0, "check:complete", HOSTILE))
    assert await off.weights() == [("check:complete", 1.0)] * 30
    assert not off.influence._known
    await off.journal.close()


# What the client did itself


@pytest.mark.parametrize("limit", CHAT_COMPLETIONS.limits)
def test_a_client_that_sets_a_length_is_known_to_have_done_so(limit: str) -> None:
    reader = RequestReader(lambda zoo: False, Counters(), keeps_names=False)
    for given, is_limited in (({limit: 1}, True), ({}, False)):
        incoming = IncomingRequest(CHAT_COMPLETIONS, "call", {}, [], given)
        asked = reader.read("request", "zoo", incoming, [])
        assert judged_request(request(), asked).is_limited == is_limited
