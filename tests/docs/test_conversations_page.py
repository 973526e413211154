"""docs/conversations.md and its evidence: options, figures, bounds, and the reasons to hold."""

from typing import Any

import pytest
import typer
import yaml

from benchmarks.simulation.__main__ import agents
from benchmarks.simulation.policies import POLICIES
from litellm_messplus.conversations.caches import Turn, now
from litellm_messplus.conversations.line import CACHE_SECONDS, HOUR_SECONDS, VLLM_SECONDS
from litellm_messplus.conversations.lines import LINES, POINTS, UNUSED_SECONDS
from litellm_messplus.conversations.rule import Hold
from litellm_messplus.costs.price import CACHED, CACHED_FROM, HOUR, WRITTEN
from litellm_messplus.proxy.checking import check_affinity
from litellm_messplus.proxy.deployments.prices import public_dollars
from tests.support.markdown import ROOT, Document, code_of

PAGE = Document(ROOT / "docs" / "conversations.md")
TEXT = " ".join(PAGE.text.split())
SIMULATED = (ROOT / "docs" / "evidence" / "conversations.md").read_text().replace("`", "")


def test_every_option_of_the_simulation_is_on_the_page_with_its_default() -> None:
    app = typer.Typer(add_completion=False)
    app.command()(agents)
    command: Any = typer.main.get_command(app)
    for parameter in command.params:
        if parameter.name == "help":
            continue
        default = "" if parameter.is_flag else str(parameter.default)
        assert f"| {parameter.opts[0]} | {default}".rstrip() in SIMULATED


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_every_policy_of_the_simulation_has_its_figures(policy: Any) -> None:
    assert f"| {policy.name} | " in SIMULATED


@pytest.mark.parametrize("name", [CACHED, WRITTEN, HOUR, CACHED_FROM])
def test_the_names_of_prices_are_those_that_are_read(name: str) -> None:
    assert f"`{name}`" in TEXT


def test_the_bounds_are_those_of_the_code() -> None:
    assert f"{LINES:,} lines and {POINTS:,} prompts" in TEXT
    assert UNUSED_SECONDS == 2 * 3_600.0
    assert f"after {CACHE_SECONDS:g} seconds ({HOUR_SECONDS:,.0f} where" in TEXT
    assert f"{VLLM_SECONDS:g} are assumed of vLLM" in TEXT


def test_the_example_of_sonnet_costs_what_it_says() -> None:
    price = public_dollars({"litellm_params": {"model": "anthropic/claude-sonnet-4-5"}})
    assert price is not None
    turn = Turn(60_000, 0, 400, unmarked=1_000)
    assert f"costs {now(price, turn, 58_000):.4f} USD" in TEXT
    assert f"written, {now(price, turn, 0):.4f} USD" in TEXT
    assert f"cache, {now(price, turn, 0, share=0.0):.3f} USD" in TEXT


def test_the_example_of_the_remedy_is_one() -> None:
    blocks = [yaml.safe_load(each.code) for each in PAGE.blocks if each.language == "yaml"]
    (remedy,) = [each["router_settings"] for each in blocks if "router_settings" in each]
    check_affinity(["llama"], remedy)


def test_every_reason_to_hold_or_not_has_its_row() -> None:
    rows = [code_of(row.cells["`requests.hold`"]) for row in PAGE.under("When a request is held")]
    assert sorted(map(str, rows)) == sorted(Hold)
