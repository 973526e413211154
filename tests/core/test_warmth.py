"""What a deployment has in its cache after a call, and for how long."""

import pytest

from litellm_messplus.core.line import CACHE_SECONDS, HOUR_SECONDS, Warm, warm_after
from litellm_messplus.costs.price import Price, Usage

CHARGED = Price(3.0, 15.0, cached_discount=2.7, written_surcharge=0.75)
FREE = Price(1.0, 8.0, cached_discount=0.9)


@pytest.mark.parametrize(
    ("usage", "price", "share", "tokens", "seconds"),
    [
        # What was read and written, where writes are reported: which is where they are charged.
        (
            Usage(60_000, 400, cached_tokens=58_000, written_tokens=1_000),
            *(CHARGED, 0.1, 59_000.0, CACHE_SECONDS),
        ),
        (Usage(60_000, 400), CHARGED, 1.0, 0.0, CACHE_SECONDS),
        # Elsewhere the share of the prompt that is usually found.
        (Usage(60_000, 400), FREE, 0.5, 30_000.0, CACHE_SECONDS),
        # What was paid for an hour is warm for an hour.
        (
            Usage(2_000, 1, written_tokens=1_500, hour_tokens=1_500),
            *(CHARGED, 1.0, 1_500.0, HOUR_SECONDS),
        ),
    ],
)
def test_what_is_warm_after_a_call(
    usage: Usage, price: Price, share: float, tokens: float, seconds: float
) -> None:
    found = warm_after(usage, price, 240_000, at=7.0, share=share)
    assert (found.tokens, found.characters, found.at) == (tokens, 240_000, 7.0)
    assert found.seconds == seconds


@pytest.mark.parametrize(
    ("tokens", "now", "found"),
    [
        *((2_000.0, 10.0, 2_000.0), (2_000.0, 310.0, 2_000.0), (2_000.0, 311.0, 0.0)),
        *((1_023.0, 10.0, 0.0), (1_024.0, 10.0, 1_024.0)),  # too short to be cached
    ],
)
def test_after_its_time_nothing_is_warm(tokens: float, now: float, found: float) -> None:
    price = Price(1.0, cached_from=1_024)
    assert Warm(tokens, 8_000, at=10.0).tokens_at(now, price) == found
