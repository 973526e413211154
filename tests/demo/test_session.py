"""What a demo's client sends, and says, in each mode: against a proxy that is scripted."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from openai import OpenAI

from litellm_messplus.demo.session import Labelling, Reported, Sent, Session
from litellm_messplus.demo.tasks import Task

TASK = Task("sort", 1, "sort: 52 11", "11 52")
ROUTED = {"x-messplus-request-id": "r1"}
CALLS = [
    {"call_id": "r1.0", "role": "served", "status": "success", "answer": "11 52"},
    {"call_id": "r1.1", "role": "exploration", "status": "success", "answer": "52 11"},
    {"call_id": "r1.2", "role": "exploration", "status": "failure", "answer": None},
]
LIKE = {"zoo": "tiny-zoo", "service_level": "default"}


@dataclass
class ScriptedProxy:
    """Gives one answer to every task; keeps what it was sent."""

    answer: str = TASK.answer
    headers: dict[str, str] = field(default_factory=lambda: ROUTED)
    explored: int = 2
    status: httpx.Response = field(default_factory=lambda: httpx.Response(403))
    asked: list[dict[str, Any]] = field(default_factory=list)
    feedback: list[dict[str, Any]] = field(default_factory=list)

    def session(self, mode: str) -> Session:
        http = httpx.Client(
            base_url="http://proxy/messplus", transport=httpx.MockTransport(self._handle)
        )
        client = OpenAI(base_url="http://proxy/v1", api_key="k", http_client=http)
        return Session(client, http, "tiny-zoo", Labelling.parse(mode, 0))

    def _handle(self, request: httpx.Request) -> httpx.Response:
        match request.url.path:
            case "/v1/chat/completions":
                self.asked.append(json.loads(request.content))
                return httpx.Response(200, headers=self.headers, json=_completion(self.answer))
            case "/messplus/feedback":
                self.feedback.append(json.loads(request.content))
                return httpx.Response(200, json={})
            case "/messplus/requests/r1":
                calls = CALLS[: 1 + self.explored]
                found = {"exploration_calls": self.explored, "calls": calls}
                return httpx.Response(200, json=found)
            case "/messplus/status":
                return self.status
        raise AssertionError(request.url.path)


def _completion(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


@pytest.mark.parametrize("mode", ["all", "checks", "judge", "feedback:0.2"])
def test_satisfaction_is_checked_here_in_every_mode(mode: str) -> None:
    assert ScriptedProxy("11 52").session(mode).send(0, TASK) == Sent("r1", True)
    assert ScriptedProxy("52 11").session(mode).send(0, TASK) == Sent("r1", False)


def test_only_checks_send_the_right_answer_along() -> None:
    with_checks, without = ScriptedProxy(), ScriptedProxy()

    with_checks.session("checks").send(0, TASK)
    without.session("judge").send(0, TASK)

    assert with_checks.asked[0]["metadata"] == {"messplus_reference": "11 52"}
    assert "metadata" not in without.asked[0]


@pytest.mark.parametrize("mode", ["checks", "judge", "judge:largest"])
def test_where_programs_label_nobody_says_anything(mode: str) -> None:
    proxy = ScriptedProxy()

    proxy.session(mode).send(0, TASK)

    assert proxy.feedback == []


def test_all_answers_of_an_exploration_are_judged() -> None:
    proxy = ScriptedProxy()

    proxy.session("all").send(0, TASK)

    assert proxy.feedback == [
        {"id": "c1", "satisfied": True},
        {"id": "r1", "call_id": "r1.1", "satisfied": False},
    ]


def test_without_an_exploration_the_answer_alone_is_judged() -> None:
    proxy = ScriptedProxy(explored=0)

    proxy.session("all").send(0, TASK)

    assert proxy.feedback == [{"id": "c1", "satisfied": True}]


def test_a_crowd_judges_some_of_what_it_saw_and_nothing_else() -> None:
    proxy = ScriptedProxy("52 11")
    session = proxy.session("feedback:0.2")

    for number in range(50):
        session.send(number, TASK)

    assert 0 < len(proxy.feedback) < 50
    assert all(said == {"id": "c1", "satisfied": False} for said in proxy.feedback)


def test_what_the_plugin_did_not_route_is_left_out() -> None:
    proxy = ScriptedProxy(headers={})

    assert proxy.session("all").send(0, TASK) is None
    assert proxy.feedback == []


def test_the_report_is_that_of_the_same_promise() -> None:
    def level(zoo: str, rate: float) -> dict[str, Any]:
        satisfaction = {"answered": 3, "rate": rate, "low": 0.1, "high": 0.9, "other": None}
        last = {"satisfaction": satisfaction}
        return {"zoo": zoo, "service_level": "default", "cost_unit": "joule", "last": last}

    levels = [level("tiny-zoo", 0.5), level("tiny-zoo-crowd", 0.7)]
    proxy = ScriptedProxy(status=httpx.Response(200, json={"levels": levels}))

    assert proxy.session("all").reported(LIKE, 4) == Reported(3, 0.5, 0.1, 0.9, "joule")


def test_keys_that_may_not_see_the_report_go_without() -> None:
    assert ScriptedProxy().session("all").reported(LIKE, 4) == Reported()
