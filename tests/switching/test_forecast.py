"""The forecast is right where predictions are wrong, and wide where little is known."""

from dataclasses import asdict, replace
from random import Random

import pytest

from litellm_messplus.switching.forecast import DecidedAside, Range, forecast

TRUTH = {True: 0.9, False: 0.7}
"""What the choice satisfies: where it serves anyway, and elsewhere."""


def asides(
    count: int, seed: int, *, predicted: float = 0.8, sample: float = 0.3, alike: int = 1
) -> list[DecidedAside]:
    """Predictions that are off; the choice's cost is 2 where 1 was expected."""
    random = Random(f"aside {seed}")
    found = []
    for number in range(count // alike):
        is_seen = random.random() < 0.5
        value = float(random.random() < TRUTH[is_seen])
        is_called = is_seen or random.random() < sample
        found += [
            DecidedAside(
                conversation=f"{number}",
                predicted=predicted,
                expected_cost=1.0,
                is_seen=is_seen,
                satisfaction=value if is_called else None,
                cost=random.choice([1.0, 3.0]) if is_called else None,
                extra_cost=0.5,
            )
        ] * alike
    return found


@pytest.mark.parametrize("predicted", [0.2, 0.8, 1.0])
def test_the_truth_is_inside_nine_times_of_ten(predicted: float) -> None:
    inside = 0
    for seed in range(100):
        found = forecast(asides(1000, seed, predicted=predicted))
        assert found.satisfaction is not None
        inside += found.satisfaction.holds(0.8)
    assert 82 <= inside <= 98


def test_the_cost_is_corrected_by_what_calls_cost_and_has_those_in_addition() -> None:
    found = forecast(asides(2000, 1)).cost
    assert found is not None
    assert found.holds(2.5)
    assert found.high - found.low < 0.5


def test_what_would_have_been_saved_is_what_the_forecast_costs_less_than_the_largest() -> None:
    found = forecast([replace(each, largest=10.0) for each in asides(2000, 1)])
    assert found.cost is not None
    assert found.would_have_saved == Range(
        1.0 - found.cost.estimate / 10.0,
        1.0 - found.cost.high / 10.0,
        1.0 - found.cost.low / 10.0,
    )
    assert forecast(asides(2000, 1)).would_have_saved is None


def test_a_conversation_says_less_than_as_many_requests_of_their_own() -> None:
    apart = forecast(asides(1000, 1)).satisfaction
    together = forecast(asides(1000, 1, alike=10)).satisfaction
    assert apart is not None
    assert together is not None
    assert together.high - together.low > 2.0 * (apart.high - apart.low)


def test_nothing_is_forecast_of_a_stratum_that_was_never_seen() -> None:
    found = forecast(asides(1000, 1, sample=0.0))
    assert found.satisfaction is None
    assert found.cost is None
    assert found.requests == 1000
    assert asdict(forecast([])) == {
        "requests": 0,
        "called": 0,
        "satisfaction": None,
        "cost": None,
        "would_have_saved": None,
    }


def test_certain_predictions_make_it_no_narrower_than_the_sample_allows() -> None:
    few = forecast(asides(1000, 1, sample=0.05)).satisfaction
    many = forecast(asides(1000, 1, sample=0.9)).satisfaction
    assert few is not None
    assert many is not None
    assert few.high - few.low > many.high - many.low
