"""What a deployment has in its cache after a call, and for how long."""

import pytest

from litellm_messplus.conversations.line import (
    CACHE_SECONDS,
    HOUR_SECONDS,
    Hits,
    Warm,
    shared,
    warm_after,
)
from litellm_messplus.costs.price import Price, Usage

CHARGED = Price(3.0, 15.0, cached_discount=2.7, written_surcharge=0.75)
FREE = Price(1.0, 8.0, cached_discount=0.9)


def test_what_was_read_and_written_is_warm_where_writes_are_reported() -> None:
    usage = Usage(60_000, 400, cached_tokens=58_000, written_tokens=1_000)
    found = warm_after(usage, CHARGED, 240_000, at=7.0, share=0.1)
    assert found == Warm(59_000.0, 240_000, 7.0, CACHE_SECONDS)


def test_where_writes_are_charged_and_none_is_reported_nothing_new_is_warm() -> None:
    """A client that marks nothing for the cache finds nothing there."""
    assert warm_after(Usage(60_000, 400), CHARGED, 240_000, 0.0).tokens == 0.0


def test_elsewhere_the_share_of_the_prompt_that_is_usually_found_is_warm() -> None:
    assert warm_after(Usage(60_000, 400), FREE, 240_000, 0.0, share=0.5).tokens == 30_000.0


def test_what_was_paid_for_an_hour_is_warm_for_an_hour() -> None:
    usage = Usage(2_000, 1, written_tokens=1_500, hour_tokens=1_500)
    assert warm_after(usage, CHARGED, 8_000, 0.0).seconds == HOUR_SECONDS


@pytest.mark.parametrize(("now", "tokens"), [(10.0, 2_000.0), (310.0, 2_000.0), (311.0, 0.0)])
def test_after_its_time_nothing_is_warm(now: float, tokens: float) -> None:
    assert Warm(2_000.0, 8_000, at=10.0).tokens_at(now, FREE) == tokens


@pytest.mark.parametrize(("tokens", "expected"), [(1_023.0, 0.0), (1_024.0, 1_024.0)])
def test_a_prompt_that_is_too_short_is_not_cached(tokens: float, expected: float) -> None:
    price = Price(1.0, cached_from=1_024)
    assert Warm(tokens, 4_000, at=0.0).tokens_at(1.0, price) == expected


def test_a_branch_finds_the_part_that_it_shares() -> None:
    warm = Warm(1_000.0, 4_000, at=3.0, seconds=HOUR_SECONDS)
    assert shared(warm, 1_000) == Warm(250.0, 1_000, 3.0, HOUR_SECONDS)
    assert shared(warm, 4_000) is shared(warm, 5_000) is warm


def test_all_is_expected_to_be_found_until_calls_show_otherwise() -> None:
    hits = Hits()
    assert hits.share == 1.0
    hits.observe(1_000, 0)
    assert hits.share == 0.0
    hits.observe(1_000, 2_000)
    assert hits.share == 0.5
    hits.observe(0, 500)
    assert hits.share == 0.5
