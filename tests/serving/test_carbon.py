"""Joules that a zoo has used, as grams of CO2e."""

from typing import Any

import pytest

from litellm_messplus.serving.metrics import carbon_gauges
from litellm_messplus.status.gauges import Series
from tests.support.builders import build_zoo
from tests.support.statuses import status

NAME = Series.of("messplus_carbon_grams", zoo="llama", service_level="default")


def grams(cost: float | None = 7_200_000.0, **electricity: Any) -> dict[Series, float]:
    zoo = build_zoo(name="llama", cost_unit="joule", electricity=electricity or None)
    return carbon_gauges(status(cost=cost, priced_cost=cost), {"llama": zoo})


def test_two_kilowatt_hours_are_twice_the_grams_of_one() -> None:
    assert grams(price_per_kwh=0.3, carbon_per_kwh=380.0) == {NAME: pytest.approx(760.0)}


def test_without_carbon_nothing_is_said_and_not_zero() -> None:
    assert grams(price_per_kwh=0.3) == {}
    assert grams() == {}


def test_a_zoo_that_is_no_longer_configured_has_no_grams() -> None:
    assert carbon_gauges(status(), {}) == {}
