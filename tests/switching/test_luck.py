"""What a little more satisfaction costs: little while a cheap model gives it, and much beyond."""

import pytest

from litellm_messplus.switching.forecast import DecidedAside, Mixes, forecast

COSTS = {"small": 1.0, "medium": 2.0, "large": 12.0}
RATES = {"small": 0.5, "medium": 0.7, "large": 0.9}


def mixes(*names: str, requests: int = 10) -> Mixes:
    return Mixes.of([COSTS] * requests, [RATES] * requests, names or tuple(COSTS))


@pytest.mark.parametrize(
    ("more", "costs"),
    [(0.1, 5.0), (0.2, 10.0), (0.5, 10.0), (-0.1, -0.5), (-0.2, -1.0), (-0.5, -1.0), (0.0, 0.0)],
)
def test_each_point_costs_what_the_next_model_costs_more(more: float, costs: float) -> None:
    assert mixes().extra(0.7, more) == pytest.approx(costs)


@pytest.mark.parametrize(
    ("alpha", "can"), [(0.4, False), (0.5, False), (0.51, True), (0.9, True), (0.91, False)]
)
def test_alpha_is_steered_to_between_the_cheapest_and_the_best(alpha: float, can: bool) -> None:
    assert mixes().can_steer(alpha) is can


def test_who_reads_prompts_pays_less_and_reaches_further() -> None:
    """Half of the prompts are easy: there the cheap model does as well."""
    hard = {"small": 0.1, "large": 0.9}
    easy = {"small": 1.0, "large": 1.0}
    costs = [{"small": 1.0, "large": 11.0}] * 2
    reading = Mixes.of(costs, [hard, easy], ("small", "large"))
    average = {name: (hard[name] + easy[name]) / 2.0 for name in hard}
    blind = Mixes.of(costs, [average, average], ("small", "large"))

    assert reading.extra(0.6, 0.3) == pytest.approx(0.3 / 0.4 * 5.0)
    assert reading.extra(0.6, 0.3) < blind.extra(0.6, 0.3)


def test_of_candidates_without_verdict_nothing_is_known() -> None:
    assert mixes("small", "medium").rates[-1] == pytest.approx(0.7)
    assert not mixes("small", "medium").can_steer(0.8)
    assert Mixes.of([COSTS], [RATES], ()) == Mixes()
    assert Mixes().extra(0.7, 0.1) == 0.0


def test_a_request_that_a_candidate_could_not_take_goes_to_another() -> None:
    found = Mixes.of([COSTS, {"large": 20.0}], [RATES, {"large": 0.8}], tuple(COSTS))

    assert (found.rates[0], found.costs[0]) == pytest.approx(((0.5 + 0.8) / 2, (1.0 + 20.0) / 2))


def asides(alpha: float, came: float, *, count: int = 500) -> list[DecidedAside]:
    """Choices of which so many satisfied, by candidates between which a mix holds 0.8."""
    return [
        DecidedAside(
            conversation=str(number),
            predicted=came,
            expected_cost=2.0,
            is_seen=True,
            satisfaction=float(number % 100 < 100 * came),
            cost=2.0,
            alpha=alpha,
            costs=COSTS,
            rates=RATES,
            judged=tuple(COSTS),
        )
        for number in range(count)
    ]


def test_what_is_owed_will_be_made_up_for_so_alpha_is_inside() -> None:
    found = forecast(asides(0.8, 0.6), upcoming=1000)
    out_of_reach = forecast(asides(0.95, 0.6), upcoming=1000)

    assert found.satisfaction is not None
    assert found.satisfaction.estimate == pytest.approx(0.6)
    assert (found.satisfaction.low < 0.6, found.satisfaction.high) == (True, 0.81)
    assert out_of_reach.satisfaction is not None
    assert out_of_reach.satisfaction.high < 0.7


def test_luck_is_in_the_cost_though_every_call_costs_the_same() -> None:
    steered = forecast(asides(0.8, 0.8)).cost
    out_of_reach = forecast(asides(0.95, 0.8)).cost

    assert steered is not None
    assert out_of_reach is not None
    assert steered.low < 1.5
    assert steered.high > 3.0
    assert (out_of_reach.low, out_of_reach.high) == pytest.approx((2.0, 2.0))


def test_fewer_requests_to_come_have_more_luck() -> None:
    few, many = (forecast(asides(0.95, 0.8), upcoming=count).satisfaction for count in (50, 5000))

    assert few is not None
    assert many is not None
    assert few.high - few.low > 2.0 * (many.high - many.low)
