"""No key takes the money of a day from the others, and one that is nearly alone has nearly all."""

from collections import Counter
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.labels.buying import KEY_HALF, KEY_ROOM, KEY_START, KeyShares

TODAY = date(2026, 3, 1)
DAY = 100.0


def shares(requests: dict[str, int]) -> KeyShares:
    found = KeyShares()
    for key, count in requests.items():
        for _ in range(count):
            found.count(key, TODAY)
    return found


def most(found: KeyShares, key: str) -> float:
    """What labels of a key may cost, of a day's 100 of which nothing is spent."""
    return max(cost for cost in range(101) if found.allows(key, cost - 1e-9, DAY, DAY))


@pytest.mark.parametrize(
    ("own", "others", "part"),
    [(10, 0, 100), (1, 99, 5), (10, 90, 20), (25, 75, 50), (60, 40, 50), (80, 20, 60), (96, 4, 92)],
)
def test_a_key_has_twice_its_share_and_leaves_as_much(own: int, others: int, part: int) -> None:
    assert most(shares({"own": own, "other": others}), "own") == part


def test_what_a_key_has_spent_is_not_spent_again() -> None:
    found = shares({"own": 10, "other": 90})
    found.spend("own", 15.0)
    assert most(found, "own") == 5
    found.spend("own", -15.0)  # no label came
    assert most(found, "own") == 20


def test_a_new_day_begins_at_nothing() -> None:
    found = shares({"own": 10, "other": 90})
    found.spend("own", 20.0)
    found.count("own", TODAY + timedelta(days=1))
    assert most(found, "own") == 100


def test_what_is_bought_and_not_paid_yet_is_no_money_beyond_the_days() -> None:
    found = shares({"own": 50, "other": 50})
    found.spend("other", 30.0)
    assert found.allows("own", 50.0, DAY, DAY)
    assert not found.allows("own", 51.0, DAY, DAY)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.0, 30.0)), max_size=200))
def test_no_key_spends_beyond_its_part(asked: list[tuple[str, float]]) -> None:
    found, spent, requests = KeyShares(), Counter[str](), Counter[str]()
    for key, cost in asked:
        found.count(key, TODAY)
        requests[key] += 1
        left = DAY - spent.total()
        if cost <= left and found.allows(key, cost, left, DAY):
            found.spend(key, cost)
            spent[key] += cost  # type: ignore[assignment]
            share = requests[key] / requests.total()
            part = max(
                KEY_START, min(KEY_ROOM * share, 1.0 - min(KEY_ROOM * (1.0 - share), KEY_HALF))
            )
            assert spent[key] <= part * DAY + 1e-9


def test_only_so_many_keys_are_remembered() -> None:
    found = KeyShares(remembered=3)
    for number in range(10):
        found.count(str(number), TODAY)
    assert len(found._keys) == 3
