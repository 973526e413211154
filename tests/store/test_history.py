"""Looking a request up by any id that a client may hold."""

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import Record
from litellm_messplus.store import log
from litellm_messplus.store.history import MOST_LABELS, Found, find, history
from tests.support.builders import LARGE, exploration_call, label, request, served_call


def found(request_id: str, key_hash: str | None) -> Found:
    return Found(request_id, key_hash, "zoo", "default")


@pytest.mark.parametrize("given", ["r1", "litellm-r1", "chatcmpl-r1"])
async def test_a_request_is_found_by_any_of_its_ids(database: AsyncEngine, given: str) -> None:
    await log.append(database, [request("r1", key_hash="mine"), served_call("r1")])
    await log.append(database, [request("r2"), served_call("r2")])
    assert await find(database, given) == found("r1", "mine")


@pytest.mark.parametrize("given", ["a\0b", "a\ud800b"], ids=ascii)
async def test_an_id_no_database_takes_is_found(database: AsyncEngine, given: str) -> None:
    await log.append(database, [request("r1", litellm_call_id=given)])
    assert await find(database, given) == found("r1", "key")


async def test_a_repeated_id_is_the_newest_of_whose_it_may_be(database: AsyncEngine) -> None:
    """A client may set the same call id twice, or another's."""
    mine, theirs = (
        request(name, litellm_call_id="same", key_hash=key)
        for name, key in (("r1", "mine"), ("r2", "theirs"))
    )
    answered = served_call("r3", response_id="same")
    await log.append(database, [mine, theirs, answered, request("r3", key_hash=None)])
    whose: dict[str | None, Found | None]
    whose = {None: found("r3", None), "theirs": found("r2", "theirs"), "mine": found("r1", "mine")}
    whose["no one's"] = None
    assert {key: await find(database, "same", key) for key in whose} == whose


async def test_of_very_many_labels_the_newest_are_shown(database: AsyncEngine) -> None:
    many = [label(label_id=f"{number:03}") for number in range(MOST_LABELS + 5)]
    await log.append(database, [request(), served_call(), *many])
    shown = await history(database, "r1")
    assert shown is not None
    assert [each["label_id"] for each in shown.labels] == [each.label_id for each in many[5:]]


@pytest.mark.parametrize("given", ["", "r", "r1%", "None", "chatcmpl-r1-1", "r1.0"])
async def test_nothing_else_is_found(database: AsyncEngine, given: str) -> None:
    """Not by a part of an id, nor by the answer of an exploration, which the user never saw."""
    await log.append(
        database, [request(), served_call(response_id=None), exploration_call("r1", 1)]
    )
    assert await find(database, given) is None


async def test_the_history_is_the_request_with_its_calls_and_labels(database: AsyncEngine) -> None:
    many = [label(value=0.0, label_id="first"), label(value=1.0, label_id="second")]
    others: list[Record] = [request("r2"), served_call("r2"), label("r2")]
    await log.append(
        database, [request(), exploration_call("r1", 1), served_call(), *many, *others]
    )
    shown = await history(database, "r1")
    assert shown is not None
    assert shown.request["request_id"] == "r1"
    assert [call["call_id"] for call in shown.calls] == ["r1.0", "r1.1"]
    assert [verdict["label_id"] for verdict in shown.labels] == ["first", "second"]
    outcome = [shown.outcome[name] for name in ("served", "satisfaction", "cost")]
    assert outcome == [LARGE, 1.0, 6.0]


async def test_under_way_has_a_history_and_ids_of_others_none(database: AsyncEngine) -> None:
    await log.append(database, [request()])
    shown = await history(database, "r1")
    assert shown is not None
    assert (shown.calls, shown.labels, shown.outcome["satisfaction"]) == ([], [], None)
    assert await history(database, "litellm-r1") is None
