"""Who wrote an answer that LiteLLM's cache repeats: known here, or from the log, or by nobody."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.authors import Authors
from litellm_messplus.brain.messages import Author
from litellm_messplus.records import CallRecord, Record
from litellm_messplus.runtime.vocabulary import CallStatus
from litellm_messplus.store import log
from tests.support.builders import LARGE, SMALL, exploration_call, request, served_call

LARGEST = Author(LARGE, "deployment-1", "openai/large")


def answered(number: int, **changed: Any) -> CallRecord:
    return served_call(f"r{number}", **changed)


async def test_a_new_answers_author_is_known_before_the_log(database: AsyncEngine) -> None:
    authors = Authors(database)
    authors.wrote("zoo", answered(1))
    assert await authors.of("zoo", "chatcmpl-r1") == LARGEST
    assert await authors.of("other", "chatcmpl-r1") is None
    assert await authors.of("zoo", None) is None


async def test_another_workers_answer_is_found_in_the_log(database: AsyncEngine) -> None:
    await log.append(database, [request("r1"), answered(1), exploration_call("r1", 1)])
    authors = Authors(database)
    assert await authors.of("zoo", "chatcmpl-r1") == LARGEST
    explored = await authors.of("zoo", "chatcmpl-r1-1")
    assert explored is not None
    assert explored.candidate == SMALL
    assert await authors.of("other", "chatcmpl-r1") is None
    assert await authors.of("zoo", "chatcmpl-nobody") is None


async def test_a_repetition_is_no_author_and_the_newest_counts(database: AsyncEngine) -> None:
    same = {"response_id": "same"}
    records: list[Record] = [
        *(request("r1"), answered(1, **same)),
        *(request("r2"), answered(2, candidate=SMALL, **same)),
        *(request("r3"), answered(3, candidate="hit", is_cache_hit=True, **same)),
        *(request("r4"), answered(4, candidate="failed", status=CallStatus.FAILURE, **same)),
    ]
    await log.append(database, records)
    authors = Authors(database)
    for record in records[5::2]:
        assert isinstance(record, CallRecord)
        authors.wrote("zoo", record)
    assert len(authors._authors) == 0
    found = await authors.of("zoo", "same")
    assert found is not None
    assert found.candidate == SMALL


async def test_the_newest_answers_alone_are_remembered(database: AsyncEngine) -> None:
    authors = Authors(database, remembered=3)
    for number in (1, 2, 3, 1, 4):
        authors.wrote("zoo", answered(number))
    assert len(authors._authors) == 3
    assert await authors.of("zoo", "chatcmpl-r1") == LARGEST
    assert await authors.of("zoo", "chatcmpl-r2") is None


def test_an_author_outside_the_zoo_goes_by_its_deployment() -> None:
    assert (LARGEST.name, Author(None, "d", "m").name) == (LARGE, "d")
    assert Author(None, None, None).name is None
