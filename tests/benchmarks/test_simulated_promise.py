"""A promise over made-up sessions, kept by the router's own engine."""

import json

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.simulation.__main__ import agents
from benchmarks.simulation.promise import promise
from benchmarks.simulation.world import ZOOS, Assumed
from litellm_messplus.settings.serving import Unit

app = typer.Typer()
app.command()(agents)
SHORT = Assumed(median_turns=4.0, turns_deviation=0.5)


@pytest.mark.parametrize(("zoo", "alpha"), [("anthropic", 0.6), ("openai", 0.7)])
def test_the_share_of_satisfied_sessions_is_at_least_a_point_below_alpha(
    zoo: str, alpha: float
) -> None:
    """Every session is judged once, when it is over; the largest model alone satisfies 0.8."""
    found = promise(ZOOS[zoo], SHORT, 3, alpha, Unit.CONVERSATION, count=800)

    assert found.satisfied >= alpha - 0.01
    assert found.cost < 0.9


def test_where_one_session_in_three_is_judged_it_is_kept_too() -> None:
    found = promise(ZOOS["anthropic"], SHORT, 3, 0.7, Unit.CONVERSATION, count=800, answered=0.33)

    assert found.satisfied >= 0.7 - 0.03


def test_sessions_count_once_however_many_turns_they_take() -> None:
    """The account has as many as there were sessions, all of them judged."""
    found = promise(ZOOS["anthropic"], SHORT, 1, 0.7, Unit.CONVERSATION, count=100)

    assert found.counted == 100


def test_the_command_says_that_it_is_a_simulation() -> None:
    arguments = ["--unit", "conversation", "--alpha", "0.6", "--seeds", "1"]
    found = CliRunner().invoke(app, [*arguments, "--sessions", "40", "--json"])
    told = json.loads(found.stdout)

    assert told["simulation"] is True
    assert (told["unit"], told["alpha"], told["sessions"]) == ("conversation", 0.6, 40)
    assert 0.0 <= told["satisfied"] <= 1.0
    shown = CliRunner().invoke(app, [*arguments, "--sessions", "40"]).stdout
    assert "A SIMULATION" in shown
    assert "promised 60.0% of conversations" in shown


def test_a_unit_that_there_is_not_is_refused() -> None:
    found = CliRunner().invoke(app, ["--unit", "task"])

    assert found.exit_code != 0
    assert "given 'task'" in found.output
