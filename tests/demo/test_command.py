"""`messplus demo` where the plugin's own routes fail: one line, not a traceback."""

import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from tests.support.http_server import Answer, serving

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
        given = ["--url", f"http://127.0.0.1:{port}", "--key", "k", "--requests", "3"]
        result = CliRunner().invoke(app, ["demo", *given])

    assert isinstance(result.exception, SystemExit)
    told = str(result.exception.code)
    assert told.startswith(f"messplus: the proxy on http://127.0.0.1:{port} fails at {failing}")
    assert told.endswith(": the database does not answer: try again")
    assert "\n" not in told
