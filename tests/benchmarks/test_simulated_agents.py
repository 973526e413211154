"""The simulation of agents: what is charged, what is equal, what comes out, and that it says so."""

from dataclasses import replace

import litellm
import pytest

from benchmarks.simulation.experiment import Result, simulate
from benchmarks.simulation.policies import EACH_TURN, HELD, POLICIES, Policy, Server
from benchmarks.simulation.show import picture
from benchmarks.simulation.world import (
    ZOOS,
    Assumed,
    Model,
    Session,
    SimulatedZoo,
    predicted,
    satisfies,
    sessions,
)
from litellm_messplus.core.caches import Remaining
from litellm_messplus.costs.price import Price
from litellm_messplus.serving.deployments.prices import public_dollars

ASSUMED = Assumed()
BARS = {"anthropic": 0.75, "openai": 0.87, "vllm": 0.87}


@pytest.fixture(scope="module", params=BARS)
def result(request: pytest.FixtureRequest) -> Result:
    return simulate(ZOOS[request.param], ASSUMED, 1, count=200)


def test_holding_costs_less_than_deciding_each_turn(result: Result) -> None:
    assert result.ratio <= BARS[result.zoo.name]


def test_all_policies_satisfy_as_many_sessions(result: Result) -> None:
    for policy in POLICIES:
        found = result.average(policy.name)
        assert found.satisfied == pytest.approx(result.targets[0], abs=1e-3)
        assert found.satisfied_short == pytest.approx(found.satisfied_long, abs=0.15)


def test_only_who_decides_each_turn_switches_in_a_loop(result: Result) -> None:
    switches = {name: result.average(name).switches_in_loops for name in result.ratios}
    assert switches.pop(EACH_TURN.name) > 5.0
    assert set(switches.values()) == {0.0}


def test_where_no_prompt_is_cached_holding_saves_nothing() -> None:
    """What it saves is the caches' doing. How much one seed's sessions differ is 0.03."""
    zoo = ZOOS["openai"]
    plain = tuple(
        replace(model, price=replace(model.price, cached_discount=0.0)) for model in zoo.models
    )
    assert simulate(replace(zoo, models=plain), ASSUMED, 1, count=200).ratio > 0.93


def test_sessions_are_as_long_as_it_says() -> None:
    lengths = sorted(len(session) for session in sessions(4_000, 0, ASSUMED))
    assert lengths[2_000] == pytest.approx(20, abs=1)
    assert sum(lengths) / 4_000 == pytest.approx(29, abs=1.5)
    assert lengths[3_600] == pytest.approx(61, abs=4)


def test_what_is_predicted_is_right_on_average() -> None:
    """Of all sessions whose first turn shows about the same."""
    model = ZOOS["openai"].models[0]
    short = replace(ASSUMED, median_turns=1.0)
    drawn = [each for each in sessions(20_000, 0, short) if 0.9 < each.seen[0] < 1.1]
    true = [satisfies(model, each.difficulty, ASSUMED.slope) for each in drawn]
    assert predicted(model, 1.0, ASSUMED) == pytest.approx(sum(true) / len(true), abs=0.02)


@pytest.mark.parametrize(
    ("gap", "second"), [(10.0, 100 * 0.1 + 1 * 2 + 10), (400.0, 101 * 2 + 10)], ids=["warm", "cold"]
)
def test_a_session_is_charged_by_hand(gap: float, second: float) -> None:
    """Two turns of 100 and 101 tokens, 10 answered: what is stored costs twice a token, what is
    cached a tenth. The first prompt is stored, too."""
    price = Price(1.0, 1.0, cached_discount=0.9, written_surcharge=1.0)
    model = Model("only", price, 0.0)
    zoo = SimulatedZoo("one", "J", (model,))
    assumed = Assumed(prefix_tokens=100, growth_tokens=1, answer_tokens=10)
    server = Server(zoo, assumed, Remaining(["only"]))
    session = Session((0.0, gap), (0.0, 0.0), (True, False), 0.0)
    course = server.serve(session, HELD, 1.0)
    assert course.cost == pytest.approx(100 * 2 + 10 + second)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_at_no_price_the_cheapest_serves_and_at_any_the_best(policy: Policy) -> None:
    zoo = ZOOS["anthropic"]
    server = Server(zoo, ASSUMED, Remaining([model.name for model in zoo.models]))
    session = next(sessions(1, 0, ASSUMED))
    assert set(server.serve(session, policy, 0.0).served) == {0}
    assert set(server.serve(session, policy, 1e6).served) == {2}


@pytest.mark.parametrize("zoo", [ZOOS["anthropic"], ZOOS["openai"]], ids=lambda zoo: zoo.name)
def test_prices_are_those_of_litellms_map(zoo: SimulatedZoo) -> None:
    for model in zoo.models:
        provider = litellm.model_cost[model.name]["litellm_provider"]
        public = public_dollars({"litellm_params": {"model": f"{provider}/{model.name}"}})
        assert public is not None
        names = ("prompt", "completion", "cached_discount", "written_surcharge", "cached_from")
        for name in names:
            found, expected = getattr(model.price, name), getattr(public, name)
            assert found == pytest.approx(expected, abs=1e-15), (model.name, name)


def test_the_picture_says_that_it_is_a_simulation_and_what_was_assumed(result: Result) -> None:
    text = picture(result)
    assert text.startswith("A SIMULATION")
    assert "Assumed:" in text
    assert f"ratio {result.ratio:.2f}" in text
    for name in (*(policy.name for policy in POLICIES), *(m.name for m in result.zoo.models)):
        assert name in text
    assert max(map(len, text.splitlines())) <= 110
