"""What it costs to stay, and to switch: by hand, at Sonnet's prices."""

import pytest

from litellm_messplus.conversations.caches import (
    Remaining,
    Turn,
    hold,
    now,
    per_conversation,
    per_request,
)
from litellm_messplus.costs.price import Price, Tier

MILLION = 1e-6
SONNET = Price(
    3.0 * MILLION,
    15.0 * MILLION,
    cached_discount=2.7 * MILLION,
    written_surcharge=0.75 * MILLION,
    cached_from=1024,
)
"""Per million: 3.00 read, 0.30 read from the cache, 3.75 written there, 15.00 answered."""
AGENT = Turn(60_000, growth=1_000, completion_tokens=400, unmarked=1_000)


def test_a_warm_call_by_hand() -> None:
    """58,000 read from the cache, 1,000 written, 1,000 after the last mark, 400 answered."""
    found = now(SONNET, AGENT, warm_tokens=58_000)
    assert found == pytest.approx(0.0174 + 0.00375 + 0.003 + 0.006)
    assert round(found, 4) in (0.0301, 0.0302)


def test_a_cold_call_by_hand() -> None:
    """59,000 written, which is what a switch costs."""
    found = now(SONNET, AGENT, warm_tokens=0)
    assert found == pytest.approx(0.22125 + 0.003 + 0.006)
    assert round(found, 3) == 0.230


def test_where_clients_mark_nothing_for_the_cache_nothing_is_written_to_it() -> None:
    assert now(SONNET, AGENT, 0, share=0.0) == pytest.approx(0.18 + 0.006)


def test_no_more_is_warm_than_the_prompt_has() -> None:
    short = Turn(2_000, 0, 0)
    assert now(SONNET, short, warm_tokens=9_000) == pytest.approx(2_000 * 0.3 * MILLION)


def test_a_prompt_that_is_too_short_is_not_written() -> None:
    assert now(SONNET, Turn(1_000, 0, 0), 0) == pytest.approx(0.003)
    assert now(SONNET, Turn(1_024, 0, 0), 0) == pytest.approx(1_024 * 3.75 * MILLION)


def test_to_hold_is_this_call_and_the_coming_ones_by_hand() -> None:
    """Two more, of 61,000 and 62,000 tokens: each reads what the one before had, 60,000 and 61,000,
    writes 1,000 and answers 400."""
    coming = 0.0183 + 0.018 + 2 * (0.00375 + 0.006)
    found = hold(SONNET, AGENT, 58_000, remaining=2)
    assert found == pytest.approx(0.03015 + coming)


def test_with_none_to_come_it_is_this_call_alone() -> None:
    assert hold(SONNET, AGENT, 58_000, 0) == now(SONNET, AGENT, 58_000)


def test_without_a_cache_the_coming_calls_read_their_whole_prompts() -> None:
    plain = Price(3.0 * MILLION, 15.0 * MILLION)
    coming = (61_000 + 62_000) * 3.0 * MILLION + 2 * 0.006
    assert hold(plain, AGENT, 0, 2) == pytest.approx(0.186 + coming)
    assert hold(SONNET, AGENT, 0, 2, share=0.0) == pytest.approx(0.186 + coming)


def test_coming_calls_that_grow_above_a_limit_cost_what_holds_there() -> None:
    tiered = Price(1.0, 0.0, tiers=(Tier(100, Price(2.0, 0.0)),))
    assert hold(tiered, Turn(90, 10, 0), 0, remaining=3) == 90 + 2.0 * (100 + 110 + 120)


def test_coming_calls_are_cached_once_they_are_long_enough() -> None:
    price = Price(1.0, 0.0, cached_discount=0.9, cached_from=100)
    assert hold(price, Turn(50, 10, 0), 0, 1) == pytest.approx(50 + 60)
    assert hold(price, Turn(90, 10, 0), 0, 1) == pytest.approx(90 + 0.1 * 90 + 10)


def test_a_request_costs_its_share_of_all_that_come() -> None:
    assert per_request(12.0, remaining=3.0) == 3.0


def test_a_conversation_costs_what_an_average_one_does_in_proportion() -> None:
    """However long it is: three times as expensive stays three times as expensive."""
    short = per_conversation([1.0, 3.0], typical=[10.0, 30.0])
    assert short == per_conversation([100.0, 300.0], typical=[10.0, 30.0]) == [10.0, 30.0]


def test_conversations_that_cost_nothing_are_no_error() -> None:
    assert per_conversation([0.0, 0.0], typical=[0.0, 0.0]) == [0.0, 0.0]


# How many calls are still to come.


def test_before_any_has_ended_as_many_are_expected_as_there_were() -> None:
    assert Remaining(["small", "large"]).after(3) == {"small": 3.0, "large": 3.0}


def test_what_followed_is_a_mean_over_lines_for_each_candidate() -> None:
    remaining = Remaining(["small", "large"])
    for calls in (1, 3):
        remaining.ended("small", calls)
    remaining.ended("large", 9)
    assert remaining.after(1) == {"small": 1.0, "large": 8.0}
    assert remaining.after(2) == {"small": 0.5, "large": 6.5}  # after 2 and 3 calls
    assert remaining.after(5) == {"small": 3.5, "large": 3.5}  # as of the other


def test_a_line_that_changed_hands_teaches_each_of_its_own_calls() -> None:
    remaining = Remaining(["small", "large"])
    remaining.ended("large", 7, first=6)
    assert remaining.after(4) == {"small": 0.5, "large": 0.5}
    assert remaining.after(1) == {"small": 1.0, "large": 1.0}


def test_however_long_a_line_is_it_has_a_place() -> None:
    remaining = Remaining(["small"])
    remaining.ended("small", 10_000)
    assert remaining.after(100_000)["small"] == pytest.approx(10_000 - (2_048 + 10_000) / 2)
    assert remaining.after(0) == remaining.after(1)
