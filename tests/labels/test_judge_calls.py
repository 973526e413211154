"""How the proxy asks a judge: once, for nobody's account, and plainly where it must be."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import litellm
import pytest

from litellm_messplus.costs.price import Price
from litellm_messplus.labels.judge.asking import JudgeRefusedError, Reply
from litellm_messplus.labels.judge.prompts import schema
from litellm_messplus.serving.judges import JudgeCalls

MESSAGES = [{"role": "user", "content": "grade this"}]
NAMES = {"message": "no", "model": "critic", "llm_provider": "openai"}


def answer(usage: dict[str, int] | None, cost: float) -> Any:
    choice = SimpleNamespace(message=SimpleNamespace(content="{}"))
    return SimpleNamespace(choices=[choice], usage=usage, _hidden_params={"response_cost": cost})


@dataclass
class FakeRouter:
    """Stands in for LiteLLM's router: ``script`` answers or raises by what it is called with."""

    script: Callable[[dict[str, Any]], Any]
    calls: list[dict[str, Any]] = field(default_factory=list)
    model_list: list[dict[str, Any]] = field(default_factory=list)

    async def acompletion(self, **arguments: Any) -> Any:
        self.calls.append(arguments)
        return self.script(arguments)


@pytest.fixture
def ask_through(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeRouter], JudgeCalls]:
    def through(router: FakeRouter) -> JudgeCalls:
        server = SimpleNamespace(llm_router=router)
        monkeypatch.setitem(sys.modules, "litellm.proxy.proxy_server", server)
        monkeypatch.setattr("litellm.proxy.proxy_server", server, raising=False)
        return JudgeCalls("critic")

    return through


AskThrough = Callable[[FakeRouter], JudgeCalls]


async def ask(calls: JudgeCalls) -> Reply:
    return await calls(MESSAGES, schema(2), 7.0)


async def test_it_is_asked_once_for_nobodys_account(ask_through: AskThrough) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    router = FakeRouter(lambda arguments: answer(usage, 0.25))

    reply = await ask(ask_through(router))

    assert reply == Reply("{}", cost=0.25, prompt_tokens=10, completion_tokens=5)
    (call,) = router.calls
    assert (call["model"], call["timeout"], call["messages"]) == ("critic", 7.0, MESSAGES)
    assert (call["num_retries"], call["disable_fallbacks"]) == (0, True)
    assert call["metadata"] == {"internal_call_origin": "messplus_judge"}


def listed(name: str, model: str, **info: object) -> dict[str, Any]:
    return {"model_name": name, "litellm_params": {"model": model}, "model_info": info}


def test_its_price_is_the_highest_of_those_that_may_be_called(ask_through: AskThrough) -> None:
    cheap = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}
    dear = {"input_cost_per_token": 3e-6, "output_cost_per_token": 1e-6}
    router = FakeRouter(lambda _: None)
    router.model_list = [
        *(listed("critic", "openai/a", **cheap), listed("critic", "openai/b", **dear)),
        listed("critic", "openai/nobody-knows"),
        listed("critic", "openai/c", input_cost_per_token="a lot", output_cost_per_token=1),
        listed("other", "openai/d", input_cost_per_token=1, output_cost_per_token=1),
    ]
    calls = ask_through(router)

    assert calls.price() == Price(prompt=3e-6, completion=1e-6)
    assert JudgeCalls("critic", "openai/a").price() == Price(prompt=1e-6, completion=1e-6)
    assert JudgeCalls("nobody").price() is None


def test_its_price_is_unknown_before_the_proxy_runs() -> None:
    assert JudgeCalls("critic").price() is None


async def test_without_tokens_the_cost_is_unknown_not_zero(ask_through: AskThrough) -> None:
    reply = await ask(ask_through(FakeRouter(lambda arguments: answer(None, 0.0))))

    assert reply == Reply("{}")


@pytest.mark.parametrize(
    "error",
    [litellm.ContextWindowExceededError(**NAMES), litellm.ContentPolicyViolationError(**NAMES)],
    ids=["too long", "not allowed"],
)
async def test_refused_content_has_no_second_try(ask_through: AskThrough, error: Exception) -> None:
    def refuse(arguments: dict[str, Any]) -> Any:
        raise error

    router = FakeRouter(refuse)
    with pytest.raises(JudgeRefusedError):
        await ask(ask_through(router))

    assert len(router.calls) == 1


async def test_a_bad_request_is_refused_and_says_nothing_more(ask_through: AskThrough) -> None:
    def refuse(arguments: dict[str, Any]) -> Any:
        raise litellm.BadRequestError(**NAMES)

    router = FakeRouter(refuse)
    calls = ask_through(router)
    for _ in range(2):
        with pytest.raises(JudgeRefusedError):
            await ask(calls)

    assert ["response_format" in call for call in router.calls] == [True, False, True, False]


async def test_any_other_error_is_passed_on_to_be_tried_later(ask_through: AskThrough) -> None:
    def fail(arguments: dict[str, Any]) -> Any:
        raise litellm.ServiceUnavailableError(**NAMES)

    router = FakeRouter(fail)
    with pytest.raises(litellm.ServiceUnavailableError):
        await ask(ask_through(router))

    assert len(router.calls) == 1
