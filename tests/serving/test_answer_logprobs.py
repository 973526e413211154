"""Which deployments are asked for log-probabilities, and which are not asked again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from litellm import BadRequestError, should_retry

from litellm_messplus.runtime.counters import Counters
from litellm_messplus.serving import logprobs
from litellm_messplus.serving.deployments.deployment import exploration_target
from litellm_messplus.serving.logprobs import PROBE_SECONDS, AnswerLogprobs
from litellm_messplus.serving.open_requests import OpenRequests
from litellm_messplus.settings.schema import ZooSettings


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [1000.0]
    monkeypatch.setattr(logprobs, "monotonic", lambda: clock[0])
    return clock


@contextmanager
def own_call() -> Iterator[None]:
    token = exploration_target.set("openai/huge")
    yield
    exploration_target.reset(token)


def build(**zoo: Any) -> AnswerLogprobs:
    zoos = {"zoo": ZooSettings(alpha=0.8, **zoo), "other": ZooSettings(alpha=0.8)}
    return AnswerLogprobs(zoos, OpenRequests(), Counters())


def call(deployment: str = "d1", group: str = "zoo", **more: Any) -> dict[str, Any]:
    return {
        "model": "openai/huge",
        "litellm_call_id": f"call-of-{deployment}",
        "model_info": {"id": deployment},
        "metadata": {"model_group": group},
        **more,
    }


def asks(found: AnswerLogprobs, call: dict[str, Any], call_type: str = "acompletion") -> bool:
    with own_call():
        given = found.with_logprobs(call, call_type)
    assert given is None or given == {**call, "logprobs": True}
    return given is not None


def test_a_zoo_is_not_asked_unless_its_operator_wants_it(now: list[float]) -> None:
    assert not build().is_on
    found = build(answer_logprobs=True)
    assert found.is_on
    assert asks(found, call())
    assert not asks(found, call("d2", group="other"))


@pytest.mark.parametrize(
    "more",
    [
        {"stream": True},
        {"logprobs": False},
        {"extra_body": {"logprobs": 1}},
        {"model": "anthropic/claude-sonnet-4"},
        {"model": "nobody/knows"},
    ],
    ids=str,
)
def test_what_is_streamed_said_or_not_known_is_left_alone(
    now: list[float], more: dict[str, Any]
) -> None:
    assert not asks(build(answer_logprobs=True), call(**more))


def test_other_apis_and_other_peoples_calls_are_left_alone(now: list[float]) -> None:
    found = build(answer_logprobs=True)
    assert not asks(found, call(), "aresponses")
    assert found.with_logprobs(call(), "acompletion") is None  # no request of ours


def test_until_it_has_answered_a_deployment_is_asked_once_a_minute(now: list[float]) -> None:
    found = build(answer_logprobs=True)
    assert [asks(found, call()) for _ in range(3)] == [True, False, False]
    assert asks(found, call("d2"))
    now[0] += PROBE_SECONDS
    assert [asks(found, call()) for _ in range(2)] == [True, False]


def test_the_deployments_that_are_remembered_are_bounded(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logprobs, "DEPLOYMENTS", 2)
    found = build(answer_logprobs=True)
    assert all(asks(found, call(f"d{number}")) for number in range(3))
    assert len(found._due) == 2
    assert not asks(found, call("d2"))
    assert asks(found, call("d0"))  # forgotten


def test_one_that_refuses_is_not_asked_again_and_that_is_counted(now: list[float]) -> None:
    found = build(answer_logprobs=True)
    assert asks(found, call())
    refusal = BadRequestError("logprobs are not allowed", "huge", "openai")
    found.failed({**call(), "exception": refusal})
    assert should_retry(refusal.status_code)
    now[0] += 10 * PROBE_SECONDS
    assert not asks(found, call())
    assert found.counters.as_dict() == {"logprobs_refused": 1}


@pytest.mark.parametrize("words", ["the model is overloaded", "no logprobs, said to a client"])
def test_other_failures_and_those_of_clients_who_asked_change_nothing(
    now: list[float], words: str
) -> None:
    found = build(answer_logprobs=True)
    if "client" in words:
        assert not asks(found, call(logprobs=True, top_logprobs=99))
    else:
        assert asks(found, call())
    failure = BadRequestError(words, "huge", "openai")
    found.failed({**call(), "exception": failure})
    assert failure.status_code == 400
    now[0] += PROBE_SECONDS
    assert asks(found, call())
