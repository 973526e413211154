"""The demo where no proxy answers, or the plugin's own routes fail: one line, not a traceback."""

import pytest

from examples.tiny_zoo.demo.command import run
from examples.tiny_zoo.demo.session import Labelling
from tests.support.http_server import Answer, serving
from tests.support.ports import free_port

ROUTED = {"x-messplus-request-id": "r1"}
COMPLETION = {
    "id": "c1",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "1"}, "finish_reason": "stop"}
    ],
}
AWAY = Answer({"detail": "the database does not answer: try again"}, status=503)
LOGGED = Answer(
    {"zoo": "tiny-zoo", "service_level": "default", "exploration_calls": 0, "calls": [1]}
)


def refusal(url: str) -> str:
    with pytest.raises(SystemExit) as refused:
        run(
            url=url,
            key="k",
            model=None,
            labelling=Labelling.parse("all", 0),
            requests=3,
            seed=0,
            concurrent=1,
            ask_all=False,
            as_json=True,
            svg=None,
        )
    return str(refused.value)


def test_without_a_proxy_one_line_says_so() -> None:
    url = f"http://127.0.0.1:{free_port()}"

    assert refusal(url) == f"messplus: no proxy answers on {url}: start it with `make run`"


@pytest.mark.parametrize(
    "failing", ["/messplus/feedback", "/messplus/requests", "/messplus/status"]
)
def test_a_route_that_fails_is_one_line(failing: str) -> None:
    def answer(method: str, path: str) -> Answer:
        if path.startswith(failing):
            return AWAY
        if path.startswith("/v1/"):
            return Answer(COMPLETION, headers=ROUTED)
        return LOGGED if path.startswith("/messplus/requests") else Answer({})

    with serving(answer) as port:
        told = refusal(f"http://127.0.0.1:{port}")

    assert told.startswith(f"messplus: the proxy on http://127.0.0.1:{port} fails at {failing}")
    assert told.endswith(": the database does not answer: try again")
    assert "\n" not in told
