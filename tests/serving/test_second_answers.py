"""When an answer is read to keep or replace it, and what is logged in whichever order LiteLLM tells
of its end and asks for the answer that the client gets."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import litellm
import pytest
from litellm.integrations.custom_guardrail import CustomGuardrail

from litellm_messplus.core.answer import AnswerReading
from litellm_messplus.core.engine import Choice, Engine, Question
from litellm_messplus.core.second_answer import CHECKED_SHARE
from litellm_messplus.labels.source import AnsweredCall
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.serving import repeating
from litellm_messplus.store.tables import calls
from tests.support.in_process import brain_of, written
from tests.support.journey import BROKEN, LARGE, SMALL, Journey, RoutedRequest, journey
from tests.support.patience import until_it_holds

PROXIED: dict[str, Any] = {"proxy_server_request": {}}
SORRY, RIGHT = "Sorry, maybe.", "It is 4."
READING = AnswerReading(0.74, 0.31, LARGE, 0.8)


def answer(text: str, deployment: str, **hidden: Any) -> Any:
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    params = {"model_id": deployment, "response_cost": 0.0, **hidden}
    return {"id": f"chatcmpl-{deployment}", "choices": [choice], "_hidden_params": params}


FIRST, SECOND = answer(SORRY, "small"), answer(RIGHT, "large")


class Router:
    """LiteLLM's router: it answers, or fails, once it may."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.error: Exception | None = None
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def acompletion(self, **arguments: Any) -> Any:
        self.calls.append(arguments)
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return SECOND


@pytest.fixture
def router(monkeypatch: pytest.MonkeyPatch) -> Router:
    found = Router()
    monkeypatch.setattr(repeating, "llm_router", lambda: found)
    return found


@pytest.fixture(autouse=True)
def reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small one serves, each answer that may be is read, and goes on to the large."""
    decide = Engine.decide

    def always(self: Engine, question: Question, *given: Any) -> Choice:
        choice = decide(self, question, *given)
        alone: dict[str, Any] = {"ranking": (SMALL, LARGE), "explored": ()}
        decision = replace(choice.decision, reads=question.may_go_on, **alone)
        return replace(choice, decision=decision)

    monkeypatch.setattr(Engine, "decide", always)
    monkeypatch.setattr(Engine, "reads", lambda *given: READING)


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[Journey]:
    async with journey(tmp_path, {"second_answer": "auto"}) as found:
        yield found


async def given(proxy: Journey, asked: RoutedRequest, response: Any = FIRST) -> Any:
    """What the client gets, by LiteLLM's hook."""
    hook = proxy.plugin.async_post_call_success_hook
    found = await hook(asked.arguments, None, response)
    got = response if found is None else found
    await handed(proxy, asked, got)
    return got


async def handed(proxy: Journey, asked: RoutedRequest, response: Any) -> Any:
    """LiteLLM asks for the headers of the answer, as it goes out."""
    hook = proxy.plugin.async_post_call_response_headers_hook
    info = {"model_id": response["_hidden_params"]["model_id"]}
    return await hook(asked.arguments, None, response, None, info)


async def told(proxy: Journey, asked: RoutedRequest) -> None:
    await proxy.answers(asked, "small", FIRST)


async def logged(proxy: Journey, folder: Path) -> list[tuple[str, str, float | None]]:
    await until_it_holds(lambda: not proxy.plugin.parts.served.open_requests.unended())
    await proxy.settled()
    return [(row.role, row.candidate, row.answer_said) for row in await written(folder, calls)]


@pytest.mark.parametrize("is_told_first", [True, False])
async def test_the_first_is_logged_before_the_second_whenever_litellm_tells_of_it(
    proxy: Journey, router: Router, tmp_path: Path, is_told_first: bool
) -> None:
    asked = await proxy.ask(**PROXIED)
    if is_told_first:
        await told(proxy, asked)
    assert await given(proxy, asked) is SECOND
    if not is_told_first:
        await told(proxy, asked)

    assert await logged(proxy, tmp_path) == [("replaced", SMALL, 0.31), ("served", LARGE, None)]
    first, second = await written(tmp_path, calls)
    assert (first.response_id, second.response_id) == (None, "chatcmpl-large")
    assert (first.call_id, second.call_id) == (f"{first.request_id}.first", f"{first.request_id}.0")
    assert proxy.counters == {"second_answers": 1}


async def test_the_headers_name_both_models(proxy: Journey, router: Router) -> None:
    asked = await proxy.ask(**PROXIED)
    headers = await handed(proxy, asked, await given(proxy, asked))

    assert headers is not None
    assert headers["x-messplus-model"] == LARGE
    assert headers["x-messplus-first-model"] == SMALL


async def test_the_second_is_the_same_request_and_key(proxy: Journey, router: Router) -> None:
    asked = await proxy.ask("What is 2 + 2?", temperature=0.5, **PROXIED)
    await given(proxy, asked)

    (called,) = router.calls
    assert called["messages"] == [{"role": "user", "content": "What is 2 + 2?"}]
    assert (called["model"], called["temperature"]) == ("zoo", 0.5)
    assert called["metadata"]["user_api_key_hash"] == "key"
    assert called["disable_fallbacks"]


@pytest.mark.parametrize(
    "given_with",
    [
        {},
        {**PROXIED, "stream": True},
        {**PROXIED, "n": 2},
        {**PROXIED, "tools": [{"type": "function"}]},
        {**PROXIED, "web_search_options": {"search_context_size": "low"}},
    ],
    ids=["not by the proxy", "streamed", "several choices", "tools", "searches"],
)
async def test_a_request_that_a_client_does_not_wait_for_as_a_whole_is_not_read(
    proxy: Journey, router: Router, tmp_path: Path, given_with: dict[str, Any]
) -> None:
    asked = await proxy.ask(**given_with)
    assert await given(proxy, asked) is FIRST
    await told(proxy, asked)

    assert await logged(proxy, tmp_path) == [("served", SMALL, None)]
    assert router.calls == []


@pytest.mark.parametrize(
    "zoo",
    [
        {"second_answer": "off"},
        {"second_answer": "auto", "mode": "watch", "before": LARGE},
    ],
    ids=["off", "served as before"],
)
async def test_a_zoo_may_forbid_it(tmp_path: Path, router: Router, zoo: dict[str, Any]) -> None:
    async with journey(tmp_path, zoo) as proxy:
        asked = await proxy.ask(**PROXIED)
        assert await given(proxy, asked) is FIRST
    assert router.calls == []


CALLED = {"function": {"name": "look", "arguments": "{}"}}


@pytest.mark.parametrize(
    "response",
    [
        answer(SORRY, "large"),
        answer(SORRY, "elsewhere"),
        answer(SORRY, "small", cache_hit=True),
        {**FIRST, "choices": [{"message": {"content": None, "tool_calls": [CALLED]}}]},
    ],
    ids=["another candidate's", "a fallback's", "of the cache", "a tool call"],
)
async def test_another_kind_of_answer_stays(proxy: Journey, router: Router, response: Any) -> None:
    asked = await proxy.ask(**PROXIED)
    assert await given(proxy, asked, response) is response
    assert router.calls == []


@pytest.mark.parametrize(
    ("places", "is_replaced"),
    [("pre_call", True), (["pre_call", "during_call"], True), ("post_call", False), (None, False)],
)
async def test_an_answer_that_a_guardrail_has_passed_is_kept(
    proxy: Journey, router: Router, monkeypatch: pytest.MonkeyPatch, places: Any, is_replaced: bool
) -> None:
    """It would not see the one in its place."""
    guardrail = CustomGuardrail(guardrail_name="words", event_hook=places)
    monkeypatch.setattr(litellm, "callbacks", [guardrail])
    assert (await given(proxy, await proxy.ask(**PROXIED)) is SECOND) == is_replaced


async def test_an_answer_that_litellm_may_repeat_is_kept(
    proxy: Journey, router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is in its cache by then."""
    monkeypatch.setattr(litellm, "cache", SimpleNamespace())
    assert await given(proxy, await proxy.ask(**PROXIED)) is FIRST


async def test_what_other_candidates_answer_unseen_is_kept(
    proxy: Journey, router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Engine.decide

    def explored(self: Engine, question: Question, *given: Any) -> Choice:
        choice = reading(self, question, *given)
        return replace(choice, decision=replace(choice.decision, explored=(LARGE,)))

    monkeypatch.setattr(Engine, "decide", explored)
    proxy.explores_nothing()
    assert await given(proxy, await proxy.ask(**PROXIED)) is FIRST
    assert router.calls == []


async def test_a_failed_second_gives_first(proxy: Journey, router: Router, tmp_path: Path) -> None:
    router.error = BROKEN
    asked = await proxy.ask(**PROXIED)
    await told(proxy, asked)

    assert await given(proxy, asked) is FIRST
    assert await logged(proxy, tmp_path) == [("served", SMALL, 0.31)]
    assert proxy.counters == {"second_answers_failed": 1}


async def test_one_that_cannot_be_read_is_given(
    proxy: Journey, router: Router, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> AnswerReading:
        raise ValueError("garbled")

    monkeypatch.setattr(Engine, "reads", fail)
    asked = await proxy.ask(**PROXIED)
    await told(proxy, asked)

    assert await given(proxy, asked) is FIRST
    assert await logged(proxy, tmp_path) == [("served", SMALL, None)]
    assert proxy.counters == {"readings_failed": 1}


async def test_a_cancelled_one_is_logged(proxy: Journey, router: Router, tmp_path: Path) -> None:
    router.may_answer.clear()
    asked = await proxy.ask(**PROXIED)
    await told(proxy, asked)
    waiting = asyncio.create_task(given(proxy, asked))
    await until_it_holds(lambda: bool(router.calls))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    await proxy.plugin.parts.served.close()
    assert await logged(proxy, tmp_path) == [("served", SMALL, 0.31)]


async def test_the_time_is_for_both_calls(proxy: Journey, router: Router, tmp_path: Path) -> None:
    router.may_answer.clear()
    asked = await proxy.ask(timeout=0.05, **PROXIED)
    await told(proxy, asked)

    assert await given(proxy, asked) is FIRST
    assert await logged(proxy, tmp_path) == [("served", SMALL, 0.31)]


async def test_a_late_failure_loses_no_row(proxy: Journey, router: Router, tmp_path: Path) -> None:
    """As by another hook after a call, before ours."""
    asked = await proxy.ask(**PROXIED)
    await told(proxy, asked)
    await proxy.fails(asked)

    found = await logged(proxy, tmp_path)
    assert found[0] == ("served", SMALL, None)


class Source:
    """A source of labels that keeps the calls that it is shown."""

    name = "source"

    def __init__(self) -> None:
        self.calls: list[AnsweredCall] = []

    def ended(self, call: AnsweredCall) -> None:
        self.calls.append(call)

    async def close(self) -> None:
        """Nothing is under way."""


async def test_one_of_ten_replaced_is_shown_to_the_sources(proxy: Journey, router: Router) -> None:
    """By a draw of the request's id; its judge waits for both answers, to see them at once."""
    source = Source()
    brain_of(proxy.plugin.parts).road.desk._sources = {"zoo": (source,)}
    for number in range(60):
        asked = await proxy.ask(f"question {number}", **PROXIED)
        await told(proxy, asked)
        await given(proxy, asked)
        await until_it_holds(lambda: not proxy.plugin.parts.served.open_requests.unended())

    seconds = [call for call in source.calls if call.is_served]
    firsts = [call for call in source.calls if not call.is_served]
    drawn = [call for call in seconds if proxy.engine.checks_replaced(call.request.request_id)]
    assert (len(seconds), len(drawn) > 0) == (60, True)
    assert [call.call_id for call in firsts] == [f"{c.request.request_id}.first" for c in drawn]
    assert {call.request.label_probability for call in firsts} == {CHECKED_SHARE}
    assert {call.request.label_probability for call in seconds} == {None}
    assert {call.calls for call in (*firsts, *drawn)} == {2}
    assert {call.calls for call in seconds if call not in drawn} == {1}
