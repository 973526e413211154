"""A minute's worth at once, then as it comes in; of so many keys and no more."""

import pytest

from litellm_messplus.brain.influence import TokenBuckets


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_minutes_worth_may_be_taken_at_once_and_then_as_it_comes_in() -> None:
    clock = Clock()
    buckets = TokenBuckets(6, clock)
    assert [buckets.take("key") for _ in range(7)] == [0.0] * 6 + [10.0]
    clock.now += 4.0
    assert buckets.take("key") == pytest.approx(6.0)
    clock.now += 6.0
    assert buckets.take("key") == 0.0
    clock.now += 3600.0
    assert [buckets.take("key") for _ in range(7)][-2:] == [0.0, 10.0]


def test_each_key_has_its_own() -> None:
    buckets = TokenBuckets(1, Clock())
    assert [buckets.take(key) for key in ("a", "b", None, "a")] == [0.0, 0.0, 0.0, 60.0]


def test_so_many_keys_are_remembered_and_no_more() -> None:
    buckets = TokenBuckets(1, Clock(), remembered=3)
    for number in range(10):
        buckets.take(f"key-{number}")
        buckets.take("busy")
    assert len(buckets._buckets) == 3
    assert buckets.take("busy") > 0.0
