"""A zoo returns soon where it turns bad, and hardly ever where it keeps its promise."""

from random import Random
from typing import Any

import pytest

from litellm_messplus.switching.way_back import (
    BLOCK,
    Served,
    missed_too_often,
    reason_to_return,
)

ALPHA = 0.8


def traffic(
    random: Random,
    count: int,
    *,
    share: float = 0.1,
    rate: float = 0.85,
    errors: float = 0.01,
    seconds: float = 1.0,
    level: str = "default",
) -> list[Served]:
    """So many requests: ``rate``, ``errors`` and ``seconds`` are of the routed ones."""
    found = []
    for _ in range(count):
        is_routed = random.random() < share
        has_failed = random.random() < (errors if is_routed else 0.01)
        slow = seconds if is_routed else 1.0
        found.append(
            Served(
                level=level if is_routed else f"{level}:before",
                alpha=ALPHA,
                is_routed=is_routed,
                satisfaction=float(random.random() < rate) if is_routed else 1.0,
                has_failed=has_failed,
                seconds=slow * random.lognormvariate(0.0, 0.5),
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


@pytest.mark.parametrize(
    "bad", [{"rate": 0.4}, {"errors": 0.3}, {"seconds": 5.0}], ids=["rate", "errors", "seconds"]
)
@pytest.mark.parametrize("good", [0, 5000])
def test_a_canary_that_turns_bad_is_back_within_200_requests(
    good: int, bad: dict[str, Any]
) -> None:
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
    slow = reason_to_return(traffic(random, 2000, seconds=8.0))

    assert low is not None
    assert low.startswith("gold: ")
    assert "promised 80.0 %" in low
    assert errors is not None
    assert errors.startswith("errors: ")
    assert slow is not None
    assert slow.startswith("p95 latency: ")


def test_looking_often_raises_no_false_alarm() -> None:
    """40 zoos just at alpha, as slow and as faulty as before, each looked at 15 times."""
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


def test_nothing_is_said_of_requests_that_nobody_judged() -> None:
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


def test_missed_deadlines_return_a_zoo_and_a_few_do_not() -> None:
    few = [place % 200 == 0 for place in range(2000)]
    many = [place % 10 == 0 for place in range(10 * BLOCK)]

    assert missed_too_often(few) is None
    assert missed_too_often([]) is None
    assert missed_too_often(many) == "10.0% of the last 500 requests missed their deadline"
