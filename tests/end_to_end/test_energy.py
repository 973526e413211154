"""A real proxy beside a simulated zeusd: calls get the joules that were measured, and a daemon that
goes away costs measurements alone."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import until
from tests.support.profiles import COMPLETION, PROMPT, REQUEST, write_profile
from tests.support.proxy import PAPER, Config, Proxy, ask, zoo_config
from tests.support.quick_energy import QUICK_ENERGY
from tests.support.simulated_zeusd import SimulatedZeusd
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

WATTS, IDLE_WATTS = 500.0, 50.0
PROMPTS = ["a", "b c", "d e f", "g h i j"]
FIRST = "SELECT * FROM call_energy ORDER BY position"


def replied(model: str, body: dict[str, Any]) -> Reply:
    """The more words, the longer the answer and the more of its time."""
    words = len(str(body["messages"][0]["content"]).split())
    return Reply("fine", 20, 30 * words, delay_seconds=0.1 * words)


def config_of(upstream: Upstream, folder: Path, zeusd: str) -> Config:
    """Three models on one GPU; all cost alike. It explores the first request alone."""
    zoo = {**PAPER, "cost_unit": "joule", "largest": "openai/huge", "c": 0.0}
    config = zoo_config(upstream.url, folder, zoo=zoo)
    for deployment in config["model_list"]:
        model = deployment["litellm_params"]["model"].removeprefix("openai/")
        write_profile(folder / f"{model}.yaml", model=model, sensors=("gpu 0",))
        measured = {"energy_profile": f"{model}.yaml", "zeusd": zeusd, "gpus": [0]}
        deployment["model_info"] = {"messplus": measured}
    (folder / "quick_energy.py").write_text(QUICK_ENERGY)
    config["litellm_settings"]["callbacks"] = ["quick_energy.instance"]
    return config


@dataclass
class Told:
    """A proxy beside a daemon, and what its GPU drew while all calls of the test were made."""

    proxy: Proxy
    zeusd: SimulatedZeusd
    joules: float
    answers: list[str]

    def counts(self) -> dict[str, int]:
        with self.proxy.client() as client:
            found: dict[str, int] = client.get("/messplus/health").json()
        return found

    def wait_for_count(self, name: str) -> None:
        until(lambda: self.counts().get(name, 0) > 0, lambda: self.proxy.log[-4000:])


@pytest.fixture(scope="module")
def told(upstream: Upstream, folder: Path) -> Iterator[Told]:
    """Several concurrent requests, one of them explored, all within one window of the meter."""
    upstream.script = replied
    zeusd = SimulatedZeusd(gpu_watts=(WATTS, 1.0))
    zeusd.start()
    proxy = Proxy(config_of(upstream, folder, zeusd.address), folder).start()
    with proxy.client() as client:
        until(lambda: client.get("/messplus/health").status_code == 200)
    begun = window_begins(zeusd)
    with ThreadPoolExecutor(len(PROMPTS)) as pool:
        answers = list(pool.map(lambda prompt: asked(proxy, prompt), PROMPTS))
    until(lambda: len(zeusd.readings) > begun)
    drawn = zeusd.readings[begun] - zeusd.readings[begun - 1]
    proxy.wait_for_rows(FIRST, len(PROMPTS) + 2)
    yield Told(proxy, zeusd, drawn * (1 - IDLE_WATTS / WATTS), answers)
    proxy.stop()
    zeusd.stop()


def window_begins(zeusd: SimulatedZeusd) -> int:
    """Wait until a window has just begun; how many readings there were then. A window's first
    reading follows the last one of the window before at once."""
    seen = len(zeusd.readings)
    until(lambda: len(zeusd.readings) >= seen + 2 and len(zeusd.readings) % 2 == 1)
    return len(zeusd.readings)


def asked(proxy: Proxy, prompt: str) -> str:
    with proxy.client() as client:
        answer = ask(client, prompt)
    assert answer.status_code == 200
    return answer.headers["x-messplus-request-id"]


def test_the_joules_of_concurrent_calls_sum_to_what_was_measured_above_idle(told: Told) -> None:
    rows = told.proxy.rows(FIRST)
    explored = [row for row in rows if not row["call_id"].endswith(".0")]

    assert len(rows) == len(PROMPTS) + 2
    assert len(explored) == 2
    assert sum(row["joules"] for row in rows) == pytest.approx(told.joules, rel=0.01)
    assert all(row["cost"] == row["joules"] for row in rows)


def test_each_gets_its_share_by_what_its_profile_says(told: Told) -> None:
    estimate = {row["call_id"]: row["cost"] for row in told.proxy.rows("SELECT * FROM calls")}
    joules = {row["call_id"]: row["joules"] for row in told.proxy.rows(FIRST)}

    shares = [joules[call_id] / estimate[call_id] for call_id in joules]
    assert shares == pytest.approx([shares[0]] * len(shares))
    longest = REQUEST + 20 * PROMPT + 30 * len(PROMPTS) * COMPLETION
    assert max(estimate.values()) == pytest.approx(longest)


def test_requests_cost_what_was_measured_and_calls_stay_as_written(told: Told) -> None:
    outcomes = told.proxy.rows("SELECT * FROM request_outcomes")
    measured = {
        row["request_id"]: row["cost"]
        for row in told.proxy.rows(
            "SELECT request_id, SUM(cost) AS cost FROM call_energy GROUP BY request_id"
        )
    }

    assert {row["request_id"] for row in outcomes} == set(told.answers)
    assert {row["request_id"]: row["cost"] for row in outcomes} == pytest.approx(measured)
    assert all(row["is_measured"] for row in outcomes)
    (models,) = told.proxy.rows("SELECT SUM(cost) AS cost FROM calls_per_model")
    assert models["cost"] == pytest.approx(told.joules, rel=0.01)
    assert {row["cost_source"] for row in told.proxy.rows("SELECT * FROM calls")} == {"measured"}


def test_prices_follow_what_was_measured(told: Told) -> None:
    asked(told.proxy, "another")  # after the window was settled
    with told.proxy.client() as client:
        shown = client.get("/messplus/metrics").text
    factors = [
        float(line.rsplit(" ", 1)[1])
        for line in shown.splitlines()
        if line.startswith("messplus_price_factor{")
    ]

    estimated = sum(row["cost"] for row in told.proxy.rows("SELECT * FROM calls LIMIT 6"))
    assert factors
    assert all((factor > 1) is (told.joules > estimated) for factor in factors if factor != 1)
    assert any(factor != 1 for factor in factors)


@pytest.mark.counts("energy_meter_failures")
def test_a_daemon_that_goes_away_costs_measurements_alone(told: Told) -> None:
    told.zeusd.stop()
    told.wait_for_count("energy_meter_failures")
    measured = len(told.proxy.rows(FIRST))

    request_id = asked(told.proxy, "while it is away")

    (call,) = told.proxy.wait_for_rows("SELECT * FROM calls WHERE request_id = ?", 1, request_id)
    assert call["cost"] > 0
    told.wait_for_count("energy_calls_not_measured")
    assert len(told.proxy.rows(FIRST)) == measured
    (outcome,) = told.proxy.rows("SELECT * FROM request_outcomes WHERE request_id = ?", request_id)
    assert (outcome["is_measured"], outcome["cost"]) == (0, call["cost"])
    assert "energy is not measured: " in told.proxy.log


@pytest.mark.counts("energy_meter_failures")
def test_a_daemon_that_comes_back_is_read_again(told: Told) -> None:
    told.zeusd.stop()
    back = SimulatedZeusd(gpu_watts=(WATTS, 1.0), port=told.zeusd.port)
    back.start()
    try:
        until(lambda: len(back.readings) >= 2)
        request_id = asked(told.proxy, "a b c d e f g h")
        query = "SELECT * FROM call_energy WHERE request_id = ?"
        (measured,) = told.proxy.wait_for_rows(query, 1, request_id)
        assert measured["joules"] > 0
    finally:
        back.stop()


@pytest.mark.counts("energy_meter_failures")
def test_a_proxy_starts_while_the_daemon_is_away(upstream: Upstream, tmp_path: Path) -> None:
    upstream.script = replied
    proxy = Proxy(config_of(upstream, tmp_path, "127.0.0.1:1"), tmp_path).start()
    try:
        asked(proxy, "hello")
        with proxy.client() as client:
            until(lambda: "energy_meter_failures" in client.get("/messplus/health").json())
    finally:
        proxy.stop()
    assert proxy.rows("SELECT * FROM calls")
