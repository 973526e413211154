"""Routing never breaks serving: where our code fails, LiteLLM's own choice stands."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.broken_plugins import BROKEN, SLOW
from tests.support.proxy import Proxy, ask, in_the_brain, patient, zoo_config
from tests.support.upstream import Upstream

pytestmark = pytest.mark.end_to_end


@pytest.mark.counts("routing_failures", "messages_failed", "deadlines_missed")
@pytest.mark.parametrize(
    ("code", "counter", "is_logged"),
    [(BROKEN, "routing_failures", False), (SLOW, "deadlines_missed", True)],
)
def test_a_plugin_that_fails_or_is_slow_is_counted_and_serving_goes_on(
    upstream: Upstream, tmp_path: Path, code: str, counter: str, is_logged: bool
) -> None:
    in_the_brain(tmp_path, code)
    config = zoo_config(upstream.url, tmp_path, deadline_seconds=0.05)
    proxy = Proxy(config, tmp_path).start()
    try:
        with proxy.client() as client:
            answers = [ask(client) for _ in range(6)]
            counts = client.get("/messplus/health").json()
    finally:
        proxy.stop()

    assert [answer.status_code for answer in answers] == [200] * 6
    assert all(("x-messplus-model" in answer.headers) is is_logged for answer in answers)
    assert counts[counter] == 6
    assert counter in proxy.log
    assert len(proxy.rows("SELECT * FROM requests")) == 6 * is_logged


@pytest.mark.counts("database_failures", "journal_failures")
def test_a_database_that_goes_away_stops_feedback_only(upstream: Upstream, tmp_path: Path) -> None:
    proxy = Proxy(zoo_config(upstream.url, tmp_path), tmp_path).start()
    try:
        with proxy.client() as client:
            call_id = ask(client).headers["x-litellm-call-id"]
            proxy.wait_for_rows("SELECT * FROM calls", 3)
            with closing(proxy.database()) as blocker:
                blocker.execute("ALTER TABLE labels RENAME TO mislaid")
                blocker.commit()
                verdict = {"id": call_id, "satisfied": True}

                refused = client.post("/messplus/feedback", json=verdict)

                assert refused.status_code == 503
                assert ask(client).status_code == 200
                blocker.execute("ALTER TABLE mislaid RENAME TO labels")
                blocker.commit()
                assert client.post("/messplus/feedback", json=verdict).status_code == 200
                assert client.get("/messplus/health").json()["database_failures"] >= 1
    finally:
        proxy.stop()

    assert len(proxy.rows("SELECT * FROM current_labels")) == 1


@pytest.mark.counts("database_failures", "journal_failures")
def test_a_streamed_answers_id_is_known_while_the_log_cannot_be_written(
    upstream: Upstream, tmp_path: Path
) -> None:
    """A client that is told 404 gives up, and one that is told 503 comes again."""
    proxy = Proxy(patient(zoo_config(upstream.url, tmp_path), tmp_path), tmp_path).start()
    body = {"model": "zoo", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    try:
        with proxy.client() as client:
            ask(client)
            proxy.wait_for_rows("SELECT * FROM calls", 3)
            with closing(proxy.database()) as blocker:
                blocker.execute("BEGIN IMMEDIATE")
                lines = client.post("/v1/chat/completions", json=body).text.splitlines()
                response_id = json.loads(lines[0].removeprefix("data: "))["id"]

                refused = client.post(
                    "/messplus/feedback", json={"id": response_id, "satisfied": True}
                )
                blocker.rollback()
    finally:
        proxy.stop()

    assert refused.status_code == 503
