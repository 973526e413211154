"""What becomes of a verdict: written, said already, beyond what one key may say, or refused."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import HTTPException
from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain import feedback
from litellm_messplus.brain import feedback as module
from litellm_messplus.brain.feedback import (
    METADATA_KEY,
    Accepted,
    Feedback,
    FeedbackDesk,
    NextTurnFeedback,
    Outcome,
    RequestFinder,
)
from litellm_messplus.brain.influence import MOST_LEVELS, KeyInfluence, TokenBuckets
from litellm_messplus.brain.messages import Caller
from litellm_messplus.brain.routes import refusals
from litellm_messplus.core.hold import LinePlace
from litellm_messplus.labels.key_pull import LabelContent
from litellm_messplus.labels.source import Cause
from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import (
    JournalFullError,
    NotWrittenError,
    TooManyVerdictsError,
    TooOftenError,
    UnknownRequestError,
    UnloggedRequestError,
    UnsettledError,
)
from litellm_messplus.runtime.vocabulary import CallStatus
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store import log
from litellm_messplus.store.history import CallVerdicts
from tests.support.builders import build_engine, label, request, served_call
from tests.support.folding import bits, build_journal, fold_all

OWNER, ADMIN = Caller("key", is_admin=False), Caller(None, is_admin=True)


class Desk(FeedbackDesk):
    """Beside a running journal."""

    def __init__(self, database: AsyncEngine, per_minute: int = 600, **zoo: Any) -> None:
        self.engine = build_engine()
        self.counters = Counters()
        settings = MessplusSettings.model_validate({"zoos": {"zoo": {"alpha": 0.6, **zoo}}})
        self.journal = build_journal(database, self.engine, self.counters)
        finder = RequestFinder(
            database, lambda given, caller: None, self.journal.arrivals, self.counters
        )
        super().__init__(
            database,
            self.journal,
            finder,
            settings.response_biases,
            KeyInfluence(settings, database, self.counters),
            TokenBuckets(per_minute),
            self.counters,
            lambda named: f"digest of {named}",
        )

    async def judge(
        self, value: float, request_id: str = "r1", caller: Caller = OWNER, **told: Any
    ) -> Accepted:
        given = Feedback.model_validate({"id": request_id, "score": value, **told})
        return await self.accept(given, caller)


@pytest.fixture
async def desk(database: AsyncEngine) -> AsyncIterator[Desk]:
    built = Desk(database)
    built.journal.start()
    yield built
    await built.journal.close()


async def labels_in(database: AsyncEngine) -> int:
    async with database.connect() as connection:
        found = await connection.exec_driver_sql("SELECT count(*) FROM labels")
        return int(found.scalar_one())


async def test_the_same_again_writes_nothing(database: AsyncEngine, desk: Desk) -> None:
    await log.append(database, [request(), served_call()])
    outcomes = [(await desk.judge(value)).outcome for value in (0.0, 0.0, 1.0, 1.0, 0.0)]
    assert outcomes == ["counted", "unchanged", "counted", "unchanged", "counted"]
    assert await labels_in(database) == 3
    assert bits(desk.engine) == bits(await fold_all(database))


async def test_the_same_with_other_words_is_written(database: AsyncEngine, desk: Desk) -> None:
    await log.append(database, [request(), served_call()])
    for comment, outcome in ((None, "counted"), ("bad", "counted"), ("bad", "unchanged")):
        assert (await desk.judge(0.0, comment=comment)).outcome == outcome
    assert (await desk.judge(0.0)).outcome == "unchanged"


async def test_after_many_verdicts_no_further_one_is_taken_on_that_call(
    database: AsyncEngine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_VERDICTS", 4)
    await log.append(database, [request(), served_call(), request("r2")])
    for number in range(4):
        await desk.judge(number % 2)
    with pytest.raises(TooManyVerdictsError):
        await desk.judge(0.5)
    assert (await desk.judge(1.0)).outcome == "unchanged"
    assert (await desk.judge(0.0, "r2")).outcome == "counted"
    assert desk.counters.as_dict() == {"verdicts_refused": 1}


async def test_an_administrator_corrects_a_call_however_many_verdicts_it_has(
    database: AsyncEngine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_VERDICTS", 4)
    await log.append(database, [request(), served_call()])
    for number in range(4):
        await desk.judge(number % 2)
    for value in (0.5, 0.0):
        assert (await desk.judge(value, caller=ADMIN)).outcome == "counted"
    assert bits(desk.engine) == bits(await fold_all(database))
    with pytest.raises(TooManyVerdictsError):
        await desk.judge(1.0)


async def test_a_stated_bias_is_part_of_each_labels_weight(database: AsyncEngine) -> None:
    await log.append(database, [request(), request("r2")])
    desk = Desk(database, response_bias=3.0)
    desk.journal.start()
    await desk.judge(1.0)
    await desk.judge(0.0, "r2")
    async with database.connect() as connection:
        found = await connection.exec_driver_sql("SELECT value, weight FROM labels")
        assert sorted(map(tuple, found)) == [(0.0, 0.5), (1.0, 1.5)]
    await desk.journal.close()


async def test_equal_verdicts_that_come_together_are_one(database: AsyncEngine, desk: Desk) -> None:
    await log.append(database, [request(), served_call()])
    answers = await asyncio.gather(*(desk.judge(0.0) for _ in range(80)))
    assert Counter(each.outcome for each in answers) == {"counted": 1, "unchanged": 79}
    assert await labels_in(database) == 1


def test_a_text_that_no_database_holds_is_malformed() -> None:
    with pytest.raises(ValidationError, match="call_id"):
        Feedback.model_validate({"id": "r1", "call_id": "r1\0", "satisfied": True})


async def test_verdicts_that_come_together_are_no_more_either(
    database: AsyncEngine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_VERDICTS", 4)
    await log.append(database, [request(), served_call()])
    said = (desk.judge(number / 20) for number in range(12))
    answers = await asyncio.gather(*said, return_exceptions=True)
    assert await labels_in(database) == 4
    assert {type(each) for each in answers} == {Accepted, TooManyVerdictsError}


async def test_what_was_labelled_by_others_does_not_fill_a_call(
    database: AsyncEngine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_VERDICTS", 1)
    judged = label(kind="judge", source="judge", label_id="judged")
    await log.append(database, [request(), served_call(), judged])
    assert (await desk.judge(0.0)).outcome == "counted"


async def test_a_key_may_judge_so_often_administrators_always(database: AsyncEngine) -> None:
    desk = Desk(database, per_minute=3)
    for _ in range(3):
        desk._admit(OWNER)
    with pytest.raises(TooOftenError) as refused:
        desk._admit(OWNER)
    assert refused.value.retry_seconds == pytest.approx(20.0, abs=0.1)
    desk._admit(Caller("another", is_admin=False))
    for _ in range(10):
        desk._admit(Caller("key", is_admin=True))
    assert desk.counters.as_dict() == {"feedback_too_often": 1}


async def test_anothers_request_cannot_be_judged(database: AsyncEngine, desk: Desk) -> None:
    await log.append(database, [request(), served_call()])
    with pytest.raises(UnknownRequestError):
        await desk.judge(0.0, caller=Caller("carol", is_admin=False))
    assert (await desk.judge(0.0, caller=ADMIN)).outcome == "counted"


async def test_a_request_that_is_pruned_while_it_is_judged_is_as_one_that_nobody_knows(
    database: AsyncEngine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict is in the log, or refused; it is never acknowledged and in no fold."""
    await log.append(database, [request(), served_call()])

    async def pruned_meanwhile(*given: Any) -> CallVerdicts:
        async with database.begin() as connection:
            await connection.exec_driver_sql("UPDATE log_head SET start = position")
            await connection.exec_driver_sql("DELETE FROM requests")
        return CallVerdicts(0)

    monkeypatch.setattr(feedback, "call_verdicts", pruned_meanwhile)
    for given in ("r1", "chatcmpl-r1", "never"):
        with pytest.raises(UnknownRequestError, match=f"^{given}$"):
            await desk.judge(0.0, given)
    assert await labels_in(database) == 0
    assert desk.counters.as_dict()["feedback_unknown"] == 3


def in_session(name: str, **changed: Any) -> RequestRecord:
    place = LinePlace(name, name, "ab", 1, session="digest of my task")
    return replace(request(name, **changed), place=place)


async def test_a_conversations_newest_answer_is_judged(database: AsyncEngine, desk: Desk) -> None:
    told = Feedback(conversation="my task", satisfied=False)
    with pytest.raises(UnknownRequestError, match="my task"):
        await desk.accept(told, OWNER)

    failed = served_call("r3", status=CallStatus.FAILURE)
    await log.append(database, [in_session("r1"), served_call("r1"), in_session("r2")])
    desk.journal.write(served_call("r2"))  # it waits to be written
    await log.append(database, [in_session("r3"), failed, in_session("under way")])

    found = await desk.accept(told, OWNER)
    assert (found.request_id, found.call_id) == ("r2", "r2.0")
    with pytest.raises(UnknownRequestError, match="my task"):
        await desk.accept(told, Caller("other", is_admin=False))
    assert (await desk.accept(told, ADMIN)).request_id == "r2"


@pytest.mark.parametrize(
    "target",
    [{}, {"id": "c", "conversation": "c"}, {"conversation": "c", "call_id": "c.0"}],
)
def test_what_is_judged_is_named_once(target: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Feedback.model_validate({"satisfied": True, **target})


def asked_by(key: str, count: int) -> list[Record]:
    """Of now: what a key did is looked at over the last day."""
    now = datetime.now(UTC)
    return [
        each
        for number in range(count)
        for each in (
            request(f"{key}{number}", key_hash=key, created_at=now),
            served_call(f"{key}{number}"),
        )
    ]


async def test_what_one_key_says_beyond_its_influence_is_kept_and_does_not_count(
    database: AsyncEngine, desk: Desk
) -> None:
    alice, mallory = Caller("alice", is_admin=False), Caller("mallory", is_admin=False)
    await log.append(database, [*asked_by("alice", 120), *asked_by("mallory", 15)])
    for number in range(60):
        await desk.judge(float(number % 4 > 0), f"alice{number}", alice)
    before = desk.engine.state.policy.queue("default")

    said = [(await desk.judge(0.0, f"mallory{n}", mallory)).outcome for n in range(15)]

    counting = said.count(Outcome.COUNTED)
    assert 1 <= counting <= 4
    assert said[counting:] == [Outcome.BEYOND_INFLUENCE] * (15 - counting)
    moved = desk.engine.state.policy.queue("default") - before
    assert moved == pytest.approx(0.6 * counting)
    assert desk.counters.as_dict() == {"verdicts_beyond_influence": 15 - counting}
    assert await labels_in(database) == 75
    assert bits(desk.engine) == bits(await fold_all(database))
    again = await desk.judge(0.0, "mallory14", mallory)
    assert again.outcome == "unchanged"
    assert (await desk.judge(1.0, "mallory14", mallory)).outcome == "counted"


async def test_another_worker_knows_it_from_the_log(database: AsyncEngine, desk: Desk) -> None:
    await log.append(database, [*asked_by("alice", 120), *asked_by("mallory", 15)])
    for number in range(60):
        await desk.judge(float(number % 4 > 0), f"alice{number}", Caller("alice", is_admin=False))
    for number in range(5):
        await desk.judge(0.0, f"mallory{number}", Caller("mallory", is_admin=False))
    other = Desk(database)
    bad = LabelContent(0.0, 1.0)
    assert not await other.influence.may_count(Cause("zoo", "default", "mallory"), bad)
    assert await other.influence.may_count(Cause("zoo", "gold", "mallory"), bad)


async def test_the_only_key_may_say_what_it_likes(database: AsyncEngine, desk: Desk) -> None:
    await log.append(database, [*asked_by("alice", 40), *asked_by("silent", 200)])
    said = [
        (await desk.judge(0.0, f"alice{n}", Caller("alice", is_admin=False))).outcome
        for n in range(40)
    ]
    assert said == [Outcome.COUNTED] * 40


async def test_what_is_known_of_the_keys_is_bounded(database: AsyncEngine, desk: Desk) -> None:
    for number in range(MOST_LEVELS + 5):
        await desk.influence.may_count(
            Cause("zoo", f"level-{number}", "key"), LabelContent(0.0, 1.0)
        )
    assert len(desk.influence._known) == MOST_LEVELS
    assert not desk._turns


class Stall:
    """A database that commits nothing from one event on, until another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.goes_on = asyncio.Event(), asyncio.Event()
        append = log.append

        async def held(
            database: AsyncEngine, records: Sequence[Record], **how: Any
        ) -> log.Appended:
            self.begun.set()
            await self.goes_on.wait()
            return await append(database, records, **how)

        monkeypatch.setattr(log, "append", held)


async def test_a_verdict_that_was_refused_is_never_written(
    database: AsyncEngine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.append(database, [request(), served_call()])
    stall = Stall(monkeypatch)
    desk.journal.write(request("r2"))
    await stall.begun.wait()
    with pytest.raises(NotWrittenError):
        await desk.accept(Feedback(id="r1", satisfied=True), OWNER, patience=0.01)
    stall.goes_on.set()
    await desk.journal.flush()
    assert await labels_in(database) == 0


async def test_a_verdict_that_nobody_would_send_again_waits_for_the_database(
    database: AsyncEngine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.01)
    await log.append(database, [request(), served_call()])
    stall = Stall(monkeypatch)
    next_turn = NextTurnFeedback(desk, desk.counters)
    said = {METADATA_KEY: {"id": "r1", "satisfied": True}}
    next_turn.take(said, "key")
    await stall.begun.wait()
    await next_turn.close()  # a stop does not wait for it, and the journal has it
    stall.goes_on.set()
    await desk.journal.flush()
    assert await labels_in(database) == 1


def test_a_client_is_told_that_its_request_was_not_logged() -> None:
    with pytest.raises(HTTPException) as refused, refusals(Counters()):
        raise UnloggedRequestError("the request was not logged")
    assert (refused.value.status_code, refused.value.detail) == (404, "the request was not logged")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (NotWrittenError(), "nothing was written, and will not be: try again"),
        (UnsettledError(), "is not known yet. Send it again, it counts once"),
        (JournalFullError(), "nothing was written, try again"),
        (TimeoutError(), "the database does not answer: try again"),
    ],
)
def test_a_client_is_told_whether_its_verdict_may_be_written(error: Exception, told: str) -> None:
    counters = Counters()
    with pytest.raises(HTTPException) as refused, refusals(counters):
        raise error
    assert refused.value.status_code == 503
    assert refused.value.detail.endswith(told)
    assert counters.as_dict() == {"database_failures": 1}
