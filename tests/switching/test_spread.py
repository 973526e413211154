"""Sums over all keys, and over all but one, are what filtering the requests by hand gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.switching.way_back import COUNTS_IN_FULL, Spread

REQUESTS = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.integers(0, 9), st.booleans()),
    max_size=40,
)


@given(REQUESTS)
def test_each_sum_leaves_one_key_out(requests: list[tuple[str | None, int, bool]]) -> None:
    keys = [key for key, _, _ in requests]
    values = np.array([value for _, value, _ in requests], dtype=np.float64)
    chosen = np.array([is_chosen for *_, is_chosen in requests], dtype=np.bool_)
    spread = Spread(keys)

    found = spread.sums(values, chosen)

    held = [key for key in dict.fromkeys(keys) if keys.count(key) < COUNTS_IN_FULL * len(keys)]
    total = sum(value for _, value, is_chosen in requests if is_chosen)
    left = [
        sum(value for own, value, is_chosen in requests if is_chosen and own != key) for key in held
    ]
    assert list(found) == [total, *left]


def test_a_key_with_three_quarters_of_the_requests_is_never_left_out() -> None:
    ones, everything = np.ones(8), np.ones(8, dtype=np.bool_)
    assert list(Spread(["a"] * 8).sums(ones, everything)) == [8.0]
    assert list(Spread(["a"] * 6 + ["b"] * 2).sums(ones, everything)) == [8.0, 6.0]
    assert list(Spread(["a"] * 5 + ["b"] * 3).sums(ones, everything)) == [8.0, 3.0, 5.0]


def test_the_keys_that_show_something_are_counted() -> None:
    spread = Spread(["a", "a", "b", "c"])
    bad = np.array([True, True, True, False])
    since = np.array([False, True, True, True])
    assert spread.shown(bad, since) == "keys: 2 of 3"
