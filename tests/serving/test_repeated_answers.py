"""An answer of LiteLLM's cache in the hooks: a writer that nobody knows is counted, not named."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.authors import Authors
from litellm_messplus.brain.messages import UNKNOWN, Order
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.serving.deployments.deployment import Failing
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.ends import CallSink
from litellm_messplus.serving.open_requests import OpenRequest, OpenRequests, Report
from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.serving.served import ServedCalls
from litellm_messplus.serving.surfaces import answers
from litellm_messplus.store import log
from tests.support.builders import LARGE, request, served_call

REPEATED: dict[str, Any] = {"id": "chatcmpl-r1", "_hidden_params": {"cache_hit": True}}
REPORT = Report({"standard_logging_object": {"cache_hit": True}}, REPEATED)


@pytest.fixture
def plugin(database: AsyncEngine) -> MessplusPlugin:
    """With what these hooks use, and no more."""
    counters = Counters()
    road = SimpleNamespace(author_of=Authors(database).of, called=lambda *given: None)
    sink = cast(CallSink, SimpleNamespace(road=road))
    served = ServedCalls(OpenRequests(), DeploymentIndex(), sink, Failing(), counters)
    parts: Any = SimpleNamespace(zoos={}, counters=counters, served=served)
    return MessplusPlugin(parts)


async def headers(plugin: MessplusPlugin, opened: OpenRequest) -> dict[str, str]:
    metadata: dict[str, Any] = {}
    plugin.parts.served.open_requests.add(opened, metadata)
    data = {"litellm_call_id": opened.record.asker.litellm_call_id, "metadata": metadata}
    found = await plugin.async_post_call_response_headers_hook(data, None, REPEATED)
    assert found is not None
    return found


async def test_the_log_names_the_writer(plugin: MessplusPlugin, database: AsyncEngine) -> None:
    await log.append(database, [request("r1"), served_call("r1")])
    opened = OpenRequest(Order(request("r2")))

    told = await headers(plugin, opened)

    assert told == {"x-messplus-request-id": "r2", "x-messplus-model": LARGE}
    author = await plugin.parts.served._author(opened, REPORT)
    assert author.candidate == LARGE
    assert plugin.counters.as_dict() == {}


async def test_a_writer_that_nobody_knows_is_not_named_and_counted(plugin: MessplusPlugin) -> None:
    opened = OpenRequest(Order(request("r2")))

    told = await headers(plugin, opened)

    assert told == {"x-messplus-request-id": "r2"}
    assert await plugin.parts.served._author(opened, REPORT) == UNKNOWN
    assert plugin.counters.as_dict() == {"cached_answers_unknown": 1}


async def test_a_log_that_cannot_be_asked_costs_the_name_alone(
    plugin: MessplusPlugin, database: AsyncEngine
) -> None:
    async with database.begin() as connection:
        await connection.execute(text("ALTER TABLE calls RENAME TO mislaid"))
    opened = OpenRequest(Order(request("r2")))

    told = await headers(plugin, opened)

    assert told == {"x-messplus-request-id": "r2"}
    assert await plugin.parts.served._author(opened, REPORT) == UNKNOWN
    assert plugin.counters.as_dict() == {"header_failures": 1, "cached_answers_unknown": 1}


@pytest.mark.parametrize(
    ("details", "hidden", "expected"),
    [
        (None, {}, False),
        ({"cache_hit": False}, {"cache_hit": None}, False),
        ({"cache_hit": True}, {}, True),
        (None, {"cache_hit": True}, True),
    ],
)
def test_a_repetition_shows_in_the_answer_or_in_litellms_logging_object(
    details: object, hidden: dict[str, Any], expected: bool
) -> None:
    data = {"litellm_logging_obj": SimpleNamespace(caching_details=details)}
    assert answers.is_repeated(data, {"_hidden_params": hidden}) is expected
    assert answers.is_repeated({}, {}) is False
