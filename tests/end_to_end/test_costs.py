"""A zoo of own GPUs and priced APIs: what each call costs, as LiteLLM charges it or in joules."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.patience import until
from tests.support.profiles import COMPLETION, PROMPT, REQUEST, write_profile
from tests.support.proxy import PAPER, Proxy, ask, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

CALLS = "SELECT * FROM calls WHERE request_id = ?"
DELAY_SECONDS = 0.3
DOLLARS_PER_SECOND = 0.01
JOULES_PER_DOLLAR = 3_600_000 / 0.36
"""At 0.36 USD per kWh."""


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    """In joules: one model has a profile, one costs dollars a token, one dollars a second."""
    zoo = {**PAPER, "cost_unit": "joule", "largest": "openai/huge", "c": 0.0}
    zoo["electricity"] = {"price_per_kwh": 0.36, "carbon_per_kwh": 360}
    config = zoo_config(upstream.url, folder, zoo=zoo)
    tiny, middle, huge = config["model_list"]
    write_profile(folder / "tiny.yaml", model="tiny")
    tiny["model_info"] = {"messplus": {"energy_profile": "tiny.yaml"}}
    middle["model_info"] = {}
    middle["litellm_params"].update(input_cost_per_token=1e-6, output_cost_per_token=2e-6)
    huge["model_info"] = {"input_cost_per_second": DOLLARS_PER_SECOND}
    running = Proxy(config, folder).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def outcome(proxy: Proxy, upstream: Upstream) -> dict[str, dict[str, Any]]:
    """The calls of the first request, which is explored on all three, by candidate."""
    upstream.script = lambda model, body: Reply(
        delay_seconds=DELAY_SECONDS if model == "huge" else 0.0
    )
    with proxy.client() as client:
        until(lambda: client.get("/messplus/health").status_code == 200)
        answer = ask(client)
    rows = proxy.wait_for_rows(CALLS, 3, answer.headers["x-messplus-request-id"])
    return {row["candidate"]: row for row in rows}


def test_a_call_to_an_own_model_costs_what_its_profile_says(
    outcome: dict[str, dict[str, Any]],
) -> None:
    assert outcome["openai/tiny"]["cost"] == pytest.approx(REQUEST + 10 * PROMPT + 5 * COMPLETION)


def test_what_litellm_charges_by_the_token_is_the_energy_that_it_would_buy(
    outcome: dict[str, dict[str, Any]],
) -> None:
    dollars = 10 * 1e-6 + 5 * 2e-6
    assert outcome["openai/middle"]["cost"] == pytest.approx(dollars * JOULES_PER_DOLLAR)


def test_what_litellm_charges_by_the_second_is_too(outcome: dict[str, dict[str, Any]]) -> None:
    seconds = outcome["openai/huge"]["cost"] / DOLLARS_PER_SECOND / JOULES_PER_DOLLAR
    assert seconds >= DELAY_SECONDS


def test_every_cost_was_measured(outcome: dict[str, dict[str, Any]]) -> None:
    assert {row["cost_source"] for row in outcome.values()} == {"measured"}


def test_the_energy_is_shown_as_carbon(proxy: Proxy, outcome: dict[str, dict[str, Any]]) -> None:
    joules = sum(row["cost"] for row in outcome.values())
    with proxy.client() as client:
        shown: httpx.Response = client.get("/messplus/metrics")
    values = dict(line.rsplit(" ", 1) for line in shown.text.splitlines() if line[0] != "#")
    grams = float(values['messplus_carbon_grams{service_level="default",zoo="zoo"}'])
    assert grams == pytest.approx(joules * 360 / 3_600_000, rel=1e-4)


def test_the_next_request_is_expected_to_cost_what_the_first_did(
    proxy: Proxy, outcome: dict[str, dict[str, Any]]
) -> None:
    with proxy.client() as client:
        request_id = ask(client).headers["x-messplus-request-id"]
        shown = client.get(f"/messplus/requests/{request_id}").json()
    expected = shown["estimated_cost"]
    for candidate in ("openai/tiny", "openai/middle"):
        assert expected[candidate] == pytest.approx(outcome[candidate]["cost"], rel=0.3)
    assert expected["openai/huge"] == pytest.approx(
        outcome["openai/huge"]["seconds"] * DOLLARS_PER_SECOND * JOULES_PER_DOLLAR
    )
