"""A zoo returns soon where it turns bad, and hardly ever where it keeps its promise."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litellm_messplus.switching.way_back import Served, reason_to_return

ALPHA = 0.8


def traffic(
    random: Random,
    count: int,
    *,
    share: float = 0.1,
    rate: float = 0.85,
    errors: float = 0.01,
    level: str = "default",
    keys: int = 1,
) -> list[Served]:
    """So many requests of so many keys: ``rate`` and ``errors`` are of the routed ones."""
    found = []
    for _ in range(count):
        is_routed = random.random() < share
        has_failed = random.random() < (errors if is_routed else 0.01)
        found.append(
            Served(
                level=level if is_routed else f"{level}:before",
                alpha=ALPHA,
                is_routed=is_routed,
                satisfaction=float(random.random() < rate) if is_routed else 1.0,
                has_failed=has_failed,
                key=f"key {random.randrange(keys)}",
            )
        )
    return found


def canary_requests_until_return(good: int, seed: int, bad: dict[str, Any]) -> int:
    """How many canary requests went bad before the zoo returned, looked at every 100 requests."""
    random = Random(f"way back {seed}")
    served = traffic(random, good)
    assert reason_to_return(served) is None
    turned = len(served)
    while len(served) < turned + 4000:
        served += traffic(random, 100, **bad)
        if reason_to_return(served) is not None:
            break
    return sum(each.is_routed for each in served[turned:])


@pytest.mark.parametrize("bad", [{"rate": 0.4}, {"errors": 0.3}], ids=["rate", "errors"])
@pytest.mark.parametrize("good", [0, 5000])
def test_a_bad_canary_is_back_within_200_requests(good: int, bad: dict[str, Any]) -> None:
    """Whatever its past."""
    assert [canary_requests_until_return(good, seed, bad) <= 200 for seed in range(3)] == [
        True,
        True,
        True,
    ]


def test_the_reason_says_what_was_seen() -> None:
    random = Random(1)
    low = reason_to_return(traffic(random, 1000, rate=0.3, level="gold"))
    errors = reason_to_return(traffic(random, 2000, errors=0.4))

    assert low is not None
    assert low.startswith("gold: ")
    assert "promised 80.0 %" in low
    assert errors is not None
    assert errors.startswith("errors: ")


def test_looking_often_raises_no_false_alarm() -> None:
    """40 zoos just at alpha, as faulty as before, each looked at 15 times."""
    returned = 0
    for seed in range(40):
        random, served = Random(f"kept {seed}"), []
        for _ in range(15):
            served += traffic(random, 200, share=0.5, rate=ALPHA)
            if reason_to_return(served) is not None:
                returned += 1
                break
    assert returned <= 2


def test_what_was_saved_up_may_be_spent() -> None:
    """The router holds alpha over all: after a good stretch it serves cheaper."""
    good = [Served("default", ALPHA, True, 1.0)] * 100
    cheap = [Served("default", ALPHA, True, float(place % 10 < 6)) for place in range(90)]

    assert reason_to_return(good + cheap) is None
    assert reason_to_return(cheap * 2) is not None


def test_nothing_is_stated_of_requests_without_verdict() -> None:
    assert reason_to_return([Served("default", ALPHA, True)] * 500) is None
    assert reason_to_return([]) is None


def test_errors_are_compared_only_with_those_of_the_same_time() -> None:
    """Where all fail alike, the router is not to blame."""
    random = Random(3)
    served = [
        Served("default", ALPHA, random.random() < 0.5, None, has_failed=random.random() < 0.5)
        for _ in range(2000)
    ]
    assert reason_to_return(served) is None


# What one key alone may do, and what it may not.

HOSTILE = "hostile"
ATTACKS = {
    "refused bodies": {"has_failed": True, "satisfaction": None},
    "unsatisfied labels": {"has_failed": False, "satisfaction": 0.0},
}
"""How every routed request of one key ends; it never asks for what served before."""


def attack(count: int, how: dict[str, Any]) -> list[Served]:
    return [Served("default", ALPHA, True, **how, key=HOSTILE) for _ in range(count)]


def honest_and(attack: list[Served], random: Random, honest: int = 600) -> list[Served]:
    """Honest requests of twelve keys, then the attack among as many honest ones."""
    served = traffic(random, honest, share=0.5, keys=12)
    places = {random.randrange(2 * len(attack)) for _ in attack}
    for place, each in enumerate(attack):
        served.append(each)
        if place in places:
            served += traffic(random, 1, share=0.5, keys=12)
    return served


@pytest.mark.parametrize("how", ATTACKS.values(), ids=ATTACKS)
def test_one_key_among_twelve_returns_nothing_alone(how: dict[str, Any]) -> None:
    random = Random(5)
    assert reason_to_return(attack(190, how)) is None or how["satisfaction"] == 0.0
    assert reason_to_return(honest_and(attack(190, how), random)) is None


@pytest.mark.parametrize("how", ATTACKS.values(), ids=ATTACKS)
def test_the_same_requests_of_all_keys_return_the_zoo(how: dict[str, Any]) -> None:
    """So it is the key that holds them back, and not what they show."""
    served = honest_and(attack(190, how), Random(5))
    spread = [replace(each, key=f"key {place % 12}") for place, each in enumerate(served)]

    reason = reason_to_return(spread)

    assert reason is not None
    assert "(keys: 12 of 12)" in reason


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 400),
    is_failing=st.booleans(),
    satisfaction=st.none() | st.floats(0.0, 1.0),
    share=st.floats(0.0, 1.0),
)
@settings(max_examples=40)
def test_whatever_one_key_sends_returns_nothing(
    seed: int, count: int, is_failing: bool, satisfaction: float | None, share: float
) -> None:
    """In whichever arm: it may make what served before look good, too."""
    random = Random(seed)
    sent = [
        Served("default", ALPHA, random.random() < share, satisfaction, 1.0, is_failing)
        for _ in range(count)
    ]
    hostile = [replace(each, key=HOSTILE) for each in sent]
    assert reason_to_return(honest_and(hostile, Random(5))) is None


@pytest.mark.parametrize("keys", [1, 2, 3, 12])
def test_a_broken_zoo_returns_however_many_keys_it_has(keys: int) -> None:
    random = Random(7)
    served = traffic(random, 1000, share=0.5, keys=keys)
    served += traffic(random, 800, share=0.5, keys=keys, errors=0.3)
    assert reason_to_return(served) is not None


def test_a_key_that_makes_most_of_the_requests_counts_in_full() -> None:
    """The others are too few to hold it against: they would hold the zoo for ever."""
    random = Random(8)
    broken = traffic(random, 600, share=0.5, errors=0.5, keys=1)

    def others(count: int) -> list[Served]:
        return [replace(each, key="other") for each in traffic(random, count, share=0.5)]

    assert reason_to_return(others(150) + broken) is not None
    assert reason_to_return(others(300) + broken) is None


def test_a_key_counts_in_full_at_a_service_level_of_its_own() -> None:
    random = Random(9)
    gold = traffic(random, 400, share=1.0, rate=0.3, level="gold", keys=1)
    found = reason_to_return(traffic(random, 2000, share=0.5, keys=12) + gold)
    assert found is not None
    assert found.startswith("gold: ")
