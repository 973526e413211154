"""Limits besides alpha: queues, prices, and which limit comes first where not all can be kept."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.routing import adaptive
from litellm_messplus.routing.adaptive import charged, without_draw
from litellm_messplus.routing.decision import Estimate
from litellm_messplus.routing.limits import (
    AHEAD_SECONDS,
    BINDS,
    DAY,
    LATE_SHARE,
    MOST_LATE,
    MOST_SAVED,
    MOST_STRAIN,
    ROOM,
    SPARE,
    TIGHT,
    Lateness,
    Limits,
    after,
    allowed_share,
    late_price,
    strain,
)
from tests.routing.test_adaptive_decision import roll
from tests.support.builders import LARGE, SMALL, situation

COSTS = (1.0, 11.0)
LATE = {SMALL: Lateness(0.5, 0.4), LARGE: Lateness(0.01, 0.02)}
TWO = situation((SMALL, 1.0, 0.9), (LARGE, 11.0, 0.9))


@given(st.lists(st.booleans(), min_size=1, max_size=300))
def test_the_queue_of_late_requests_stays_within_its_bounds(came_late: list[bool]) -> None:
    """And ends where it began where as many are late as is allowed."""
    owed = level = 0.0
    for number, is_late in enumerate(came_late):
        owed = after(owed, is_late=is_late)
        assert -MOST_SAVED <= owed <= MOST_LATE
        level = after(level, is_late=number % round(1 / LATE_SHARE) == 0)
    assert level <= 1.0 - LATE_SHARE + 1e-9


def test_being_late_costs_nothing_until_a_late_request_is_owed() -> None:
    """The price is in the unit of cost, and there is one where all cost the same."""
    assert late_price(0.0, COSTS) == late_price(-3.0, COSTS) == 0.0
    prices = [late_price(owed, COSTS) for owed in range(30)]
    assert prices == sorted(prices)
    assert prices[-1] == late_price(MOST_LATE, COSTS)
    fivefold = [5.0 * cost for cost in COSTS]
    assert late_price(3.0, fivefold) == pytest.approx(5.0 * late_price(3.0, COSTS))
    assert late_price(3.0, (2.0, 2.0)) > 0.0 < late_price(3.0, (0.0, 0.0))


@pytest.mark.parametrize("elapsed", [0.0, 30_000.0, DAY / 2, DAY])
def test_the_budget_is_given_out_as_the_day_goes_by_an_hour_ahead(elapsed: float) -> None:
    """The strain begins below what may be spent, and ends there."""
    assert allowed_share(elapsed) == pytest.approx(min((elapsed + AHEAD_SECONDS) / DAY, 1.0))
    allowed = 10.0 * allowed_share(elapsed)
    spent = (0.0, allowed - 10.0 * ROOM, allowed, 1000.0)
    found = [strain(each, 10.0, elapsed) for each in spent]
    assert found == pytest.approx([1.0, 1.0, MOST_STRAIN, MOST_STRAIN])


@given(st.integers(0, 2**32))
def test_limits_that_do_not_bind_change_no_decision(seed: int) -> None:
    """Nor would leaving them out: nothing is charged, and a strain of 1 divides exactly."""
    seen, known, share = roll(seed)
    limited = replace(seen, limits=Limits(late_after=1.0, late_owed=-1.0, budget=9.0))
    assert charged(seen) is seen
    assert adaptive.decide(charged(limited), known, share) == adaptive.decide(seen, known, share)


def test_each_candidate_is_charged_for_being_late_and_the_logged_estimates_are_not() -> None:
    limits = Limits(late_after=1.0, late_owed=3.0, late_price=8.0, late=LATE)
    fresh = Estimate(SMALL, 1.0, 1.0, 0.9)
    limited = replace(TWO, newcomers=(fresh,), limits=limits)
    found = charged(limited)
    assert [each.cost for each in found.estimates] == pytest.approx([5.0, 11.08])
    assert [each.typical_cost for each in found.estimates] == pytest.approx([4.2, 11.16])
    assert found.newcomers[0].cost == pytest.approx(5.0)
    assert [each.cost for each in limited.estimates] == [1.0, 11.0]


def test_near_the_end_of_the_budget_nothing_is_paid_to_be_in_time_and_nothing_tried() -> None:
    limits = Limits(1.0, 3.0, 8.0, LATE, budget=10.0, spent=8.0, allowed=9.0)
    assert limits.charge == 8.0
    limits = limits._replace(spent=9.0 - 10.0 * SPARE / 2)
    assert limits.charge == 0.0
    assert charged(replace(TWO, limits=limits)).estimates == TWO.estimates
    for room, expected in ((0, (1.0, False)), (-1, (0.0, None))):
        tight = Limits(budget=10.0, strain=TIGHT + room)
        found = charged(replace(TWO, exploration_draw=0.0, limits=tight))
        assert (found.exploration_draw, found.is_labelled) == expected


@given(st.integers(0, 2**32))
def test_where_the_budget_is_used_up_none_serves_at_more_than_the_least_expensive_would(
    seed: int,
) -> None:
    seen, known, share = roll(seed)
    limits = Limits(budget=10.0, spent=10.0, allowed=10.0, strain=1e12)
    decision = adaptive.decide(charged(replace(seen, limits=limits)), known, share)
    decision = without_draw(decision, limits)
    usually = min(seen.estimates, key=lambda each: each.typical_cost)
    cost = {each.candidate: each.cost for each in seen.estimates}
    assert cost[decision.chosen] <= usually.cost
    assert (decision.explored, decision.propensity) == ((), 1.0)
    assert not decision.is_exploration


@pytest.mark.parametrize(
    ("limits", "binding"),
    [
        (Limits(), None),
        (Limits(late_after=1.0, late_owed=2.0, late_price=1.0, late=LATE), "latency"),
        (Limits(budget=1.0, strain=BINDS), "budget"),
        (Limits(1.0, 2.0, 1.0, LATE, budget=1.0, strain=BINDS), "budget"),
        (Limits(1.0, 2.0, 1.0, LATE, budget=1.0, spent=0.5, allowed=0.5), "budget"),
        (Limits(1.0, 2.0, 1.0, LATE, budget=1.0, spent=0.1, allowed=0.5), "latency"),
    ],
)
def test_the_budget_binds_before_latency(limits: Limits, binding: str | None) -> None:
    assert limits.binding == binding
