"""Limits besides alpha on a real proxy: a slow model gives way, and a day's budget lasts."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from tests.support.patience import until
from tests.support.proxy import Proxy, ask, deployment, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

TOKENS = 15
"""Of each call, by the upstream: 10 and 5."""
CHEAP, GOOD = 1e-7, 1e-4
"""Dollars a token: 25 calls of the cheap one cost a fortieth of what one of the good one does."""
LATE_SECONDS, SLOW_SECONDS = 1.5, 1.7
"""A busy machine is no later than the first with an answer that comes at once."""
LIMITS: dict[str, dict[str, Any]] = {
    "in-time": {"alpha": 0.6, "p95_seconds": LATE_SECONDS},
    "frugal": {"alpha": 0.9, "budget_per_day": 1.0},
}


def slow_where_cheap(model: str, body: dict[str, Any]) -> Reply:
    return Reply(model, delay_seconds=SLOW_SECONDS if model == "in-time-cheap" else 0.0)


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    config = zoo_config(upstream.url, folder, flush_seconds=0.05)
    config["messplus"]["zoos"] = LIMITS
    config["model_list"] = [
        deployment(zoo, f"{zoo}-{name}", upstream.url, price)
        for zoo in LIMITS
        for name, price in (("cheap", CHEAP), ("good", GOOD))
    ]
    upstream.script = slow_where_cheap
    running = Proxy(config, folder).start()
    yield running
    running.stop()


@pytest.fixture
def client(proxy: Proxy, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.script = slow_where_cheap
    with proxy.client() as connected:
        yield connected


def served(
    proxy: Proxy, client: httpx.Client, zoo: str, count: int, *, is_satisfied: bool
) -> list[str]:
    """Ask so often, judge each answer alike, and wait for each to be in the log."""
    found = []
    for number in range(count):
        reply = ask(client, f"question {number}", model=zoo)
        request_id = reply.headers["x-messplus-request-id"]
        found.append(reply.json()["choices"][0]["message"]["content"].removeprefix(f"{zoo}-"))
        ended = "SELECT * FROM calls WHERE call_id = ?"
        proxy.wait_for_rows(ended, 1, f"{request_id}.0")
        feedback = {"id": request_id, "satisfied": is_satisfied}
        client.post("/messplus/feedback", json=feedback).raise_for_status()
    return found


def test_a_slow_cheap_model_gives_way_to_a_fast_one(proxy: Proxy, client: httpx.Client) -> None:
    """Both satisfy everybody, so without the limit the cheap one would serve them all."""
    found = served(proxy, client, "in-time", 40, is_satisfied=True)
    assert found[-15:].count("good") >= 12
    rows = proxy.rows("SELECT limits FROM requests WHERE zoo = 'in-time' ORDER BY position")
    logged = json.loads(rows[-1]["limits"])
    assert logged["late_after"] == LATE_SECONDS
    assert logged["binding"] == "latency"
    assert logged["late_price"] > 0.0
    assert logged["late"]["openai/in-time-cheap"] > 0.5
    assert logged["late"]["openai/in-time-good"] < 0.2
    level = level_of(client, "in-time")
    assert level["limits"]["binding"] == "latency"
    assert level["limits"]["latency"]["ended"] == 40
    late = "SELECT * FROM calls WHERE role = 'served' AND seconds > ?"
    assert found.count("cheap") <= level["limits"]["latency"]["late"]
    assert level["limits"]["latency"]["late"] == len(proxy.rows(late, LATE_SECONDS))


def test_a_restart_goes_on_from_the_same_queue(proxy: Proxy, client: httpx.Client) -> None:
    served(proxy, client, "in-time", 3, is_satisfied=True)
    newest = "SELECT limits FROM requests WHERE zoo = 'in-time' ORDER BY position DESC LIMIT 1"
    before = json.loads(proxy.rows(newest)[0]["limits"])
    proxy.stop()
    proxy.start()
    with proxy.client() as again:
        ask(again, "again", model="in-time").raise_for_status()
    until(lambda: json.loads(proxy.rows(newest)[0]["limits"]) != before)
    after = json.loads(proxy.rows(newest)[0]["limits"])
    assert before["late_owed"] > 1.0
    assert abs(after["late_owed"] - before["late_owed"]) <= 1.0


def test_where_the_budget_is_used_up_the_cheap_model_serves(
    proxy: Proxy, client: httpx.Client, upstream: Upstream
) -> None:
    """Nobody is satisfied, so alpha asks for the good one. Half of a day's budget a call, it would
    serve twice, which it may late in the day (UTC)."""
    proxy.stop()
    budget = 2.0 * TOKENS * GOOD
    proxy.config["messplus"]["zoos"]["frugal"]["budget_per_day"] = budget
    proxy.start()
    with proxy.client() as again:
        found = Counter(served(proxy, again, "frugal", 25, is_satisfied=False))
        level = level_of(again, "frugal")
        alerts = again.get("/messplus/status").json()["alerts"]
    assert found["good"] <= 2
    spent = proxy.rows("SELECT SUM(cost) AS spent FROM request_outcomes WHERE zoo = 'frugal'")
    assert spent[0]["spent"] <= 1.02 * budget
    assert level["limits"]["budget"]["per_day"] == pytest.approx(budget)
    assert level["limits"]["budget"]["spent"] == pytest.approx(spent[0]["spent"])
    assert "over_budget" not in {each["kind"] for each in alerts if each["zoo"] == "frugal"}


def test_commands_say_which_limit_binds_and_what_it_cost(proxy: Proxy) -> None:
    database = str(proxy.folder / "messplus.db")
    told = CliRunner().invoke(app, ["status", "--database", database])
    assert "latency binds: " in told.output
    newest = "SELECT request_id FROM requests WHERE zoo = 'in-time' ORDER BY position DESC LIMIT 1"
    request_id = proxy.rows(newest)[0]["request_id"]
    explained = CliRunner().invoke(app, ["explain", request_id, "--database", database])
    assert f"requests may take longer than {LATE_SECONDS} s" in explained.output
    assert "Besides alpha, latency decided who serves." in explained.output


def level_of(client: httpx.Client, zoo: str) -> Any:
    levels = client.get("/messplus/status").json()["levels"]
    return next(each for each in levels if each["zoo"] == zoo)
