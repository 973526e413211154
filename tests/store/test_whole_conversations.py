"""The log holds who served a conversation up to its verdict, for any reader and in any pages."""

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import Record
from litellm_messplus.runtime.vocabulary import CallStatus
from litellm_messplus.state.entries import Labelled, Settled
from litellm_messplus.store import entries, history, log
from tests.support.builders import LARGE, SMALL, served_call
from tests.support.folding import bits, fold_all, read
from tests.support.summing import assert_projections_are_the_logs
from tests.support.whole_conversations import begun, turn, two_conversations, verdict


async def judged(database: AsyncEngine, *records: Record) -> list[Labelled]:
    await log.append(database, list(records))
    head = await log.head(database)
    found = [each async for each in entries.read_entries(database, 0, head)]
    return [each for each in found if isinstance(each, Labelled)]


async def test_all_turns_before_the_verdict_have_a_share(database: AsyncEngine) -> None:
    (found,) = await judged(
        database,
        *(begun(), served_call("c", candidate=SMALL)),
        *(turn("t1"), served_call("t1", candidate=SMALL)),
        *(turn("t2", LARGE), served_call("t2", candidate=LARGE)),
        *(turn("t3", LARGE), verdict(), served_call("t3", candidate=LARGE), turn("t4", LARGE)),
    )

    assert dict(found.shares) == {SMALL: 0.5, LARGE: 0.5}
    assert found.example is not None
    assert found.example.candidate == SMALL


async def test_who_failed_or_only_repeated_an_answer_has_none(database: AsyncEngine) -> None:
    (found,) = await judged(
        database,
        *(begun(), served_call("c", candidate=SMALL, is_cache_hit=True)),
        *(turn("t1", LARGE), served_call("t1", candidate=LARGE)),
        *(turn("t2"), served_call("t2", candidate=SMALL, status=CallStatus.FAILURE)),
        *(turn("t3"), served_call("t3", candidate=None), verdict()),
    )

    assert dict(found.shares) == {LARGE: 0.5}
    assert found.example is not None
    assert found.example.candidate == LARGE


async def test_a_conversation_of_one_request_is_a_request(database: AsyncEngine) -> None:
    (found,) = await judged(database, begun(), served_call("c"), verdict(), turn("t1"))

    assert found.shares == ()
    assert found.example is not None


async def test_what_was_learned_by_shares_is_not_learned_again_at_the_end_of_a_call(
    database: AsyncEngine,
) -> None:
    """The first call's end may come last of all."""
    await log.append(database, [begun(), turn("t1"), served_call("t1"), verdict(0.0)])
    await log.append(database, [served_call("c")])
    head = await log.head(database)
    found = [each async for each in entries.read_entries(database, 0, head)]

    (last,) = (each for each in found if isinstance(each, Settled) and each.call_id == "c.0")
    assert last.given == ()


async def test_in_any_pages_it_is_the_same(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.append(database, two_conversations())
    head = await log.head(database)
    whole, state = await read(database, 0, head), bits(await fold_all(database))
    for page in (1, 2, 5):
        monkeypatch.setattr(entries, "PAGE", page)
        assert await read(database, 0, head) == whole
        assert bits(await fold_all(database)) == state


async def test_the_sums_count_conversations_and_requests(database: AsyncEngine) -> None:
    await log.append(database, [begun(), served_call("c"), turn("t1"), begun("d")])
    await log.append(database, [turn("t2"), served_call("t2"), verdict(), verdict(0.0)])

    await assert_projections_are_the_logs(database)
    async with database.connect() as connection:
        found = await connection.exec_driver_sql(
            "SELECT SUM(requests), SUM(counted), SUM(judged) FROM request_sums"
        )
        assert tuple(found.one()) == (4, 2, 1)


async def test_an_imported_label_on_a_turn_is_one_on_the_conversation(
    database: AsyncEngine,
) -> None:
    answered = served_call("t1", response_id="chatcmpl-1")
    await log.append(database, [begun(), served_call("c"), turn("t1"), answered])
    ids = ("c", "t1", "litellm-t1", "chatcmpl-1")
    async with database.connect() as connection:
        found = await history.targets(connection, ids)

    assert {each: {target.call_id for target in found[each]} for each in ids} == {
        each: {"c.0"} for each in ids
    }
