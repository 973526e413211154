"""Feedback where the promise counts conversations: on which request it is, and whose it may be."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.runtime.errors import CountsRequestsError, UnknownRequestError
from litellm_messplus.serving.authentication import Caller
from litellm_messplus.serving.feedback import Accepted, Feedback
from litellm_messplus.store import log
from tests.serving.test_feedback_desk import OWNER, Desk, labels_in
from tests.support.builders import served_call, with_columns
from tests.support.folding import bits, fold_all
from tests.support.patience import PATIENT, until_it_holds
from tests.support.whole_conversations import begun, turn


@pytest.fixture
async def desk(database: AsyncEngine) -> AsyncIterator[Desk]:
    built = Desk(database, whole={"zoo"})
    built.journal.start()
    yield built
    await built.journal.close()


async def say(desk: Desk, value: float, target: dict[str, str], caller: Caller = OWNER) -> Accepted:
    return await desk.accept(Feedback.model_validate({"score": value, **target}), caller)


async def test_by_any_id_it_is_on_the_first_request(database: AsyncEngine, desk: Desk) -> None:
    answered = served_call("t1", response_id="chatcmpl-1")
    await log.append(database, [begun(), served_call("c"), turn("t1"), answered])
    ids = ({"id": "t1"}, {"id": "litellm-t1"}, {"conversation": "chatcmpl-1"})
    for target in (*ids, {"conversation": "c"}, {"id": "c"}, {"id": "t1", "call_id": "t1.0"}):
        found = await say(desk, 0.0, target)
        assert (found.request_id, found.call_id, found.conversation) == ("c", "c.0", "c")

    assert await labels_in(database) == 1, "the same verdict again is written once"
    assert bits(desk.engine) == bits(await fold_all(database))


async def test_a_session_means_its_newest_conversation(
    database: AsyncEngine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("litellm_messplus.serving.feedback.WAIT_SECONDS", 0.05)
    session = "digest of my task"
    named = with_columns(turn("t1"), session=session)
    await log.append(database, [begun(), named, served_call("c")])
    found = await say(desk, 1.0, {"conversation": "my task"})
    assert (found.request_id, found.conversation) == ("c", "c")

    for not_one in ({"id": "my task"}, {"conversation": "digest of my task"}):
        with pytest.raises(UnknownRequestError):
            await say(desk, 1.0, not_one)
    with pytest.raises(UnknownRequestError):
        await say(desk, 1.0, {"conversation": "my task"}, Caller("other", is_admin=False))
    await log.append(database, [with_columns(begun("d"), session=session), served_call("d")])
    assert (await say(desk, 0.0, {"conversation": "my task"})).conversation == "d"


async def test_of_two_contrary_ones_the_newest_counts(database: AsyncEngine, desk: Desk) -> None:
    await log.append(database, [begun(), served_call("c"), turn("t1"), served_call("t1")])
    await say(desk, 0.0, {"id": "t1"})
    await log.append(database, [turn("t2"), served_call("t2")])
    assert (await say(desk, 1.0, {"id": "t2"})).outcome == "counted"

    async with database.connect() as connection:
        found = await connection.exec_driver_sql("SELECT call_id, value FROM verdicts")
        assert tuple(found.one()) == ("c.0", 1.0)
        found = await connection.exec_driver_sql("SELECT conversation, verdict FROM conversations")
        assert tuple(found.one()) == ("c", 1.0)
    assert bits(desk.engine) == bits(await fold_all(database))


async def test_the_first_request_may_come_a_moment_later(
    database: AsyncEngine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker has yet to write it."""
    monkeypatch.setattr("litellm_messplus.serving.feedback.WAIT_SECONDS", 2 * PATIENT)
    await log.append(database, [turn("t1"), served_call("t1")])
    asked = asyncio.create_task(say(desk, 1.0, {"id": "t1"}))
    await until_it_holds(lambda: "c" in desk.journal.arrivals.expected)
    await log.append(database, [begun(), served_call("c")])
    desk.journal.follow()

    async with asyncio.timeout(PATIENT):
        assert (await asked).call_id == "c.0"


async def test_where_the_first_request_never_comes_the_named_one_stands_for_itself(
    database: AsyncEngine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("litellm_messplus.serving.feedback.WAIT_SECONDS", 0.05)
    await log.append(database, [turn("t1"), served_call("t1")])

    assert (await say(desk, 1.0, {"id": "t1"})).call_id == "t1.0"
    assert desk.counters.as_dict() == {"conversations_unknown": 1}


async def test_another_keys_conversation_is_unknown(
    database: AsyncEngine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("litellm_messplus.serving.feedback.WAIT_SECONDS", 0.05)
    await log.append(database, [begun(), turn("t1")])
    for given in ("c", "t1"):
        with pytest.raises(UnknownRequestError):
            await say(desk, 1.0, {"conversation": given}, Caller("other", is_admin=False))
    assert await labels_in(database) == 0


async def test_where_requests_are_counted_a_conversation_is_refused(
    database: AsyncEngine,
) -> None:
    desk = Desk(database)
    desk.journal.start()
    await log.append(database, [begun(), served_call("c")])
    with pytest.raises(CountsRequestsError, match="zoo"):
        await say(desk, 1.0, {"conversation": "c"})
    assert (await say(desk, 1.0, {"id": "c"})).conversation is None
    await desk.journal.close()


@pytest.mark.parametrize(
    "target",
    [{}, {"id": "c", "conversation": "c"}, {"conversation": "c", "call_id": "c.0"}],
)
def test_what_is_judged_is_named_once(target: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Feedback.model_validate({"satisfied": True, **target})
