"""Hostile keys against nine honest ones, in a closed loop with the real engine: none moves what the
others get or pay by much."""

import pytest

from benchmarks import keys
from tests.support.faults import Attacks

pytestmark = pytest.mark.faults

SEEDS, REQUESTS = 3, 4000


def test_no_hostile_key_moves_the_others_by_much(attacks: list[Attacks]) -> None:
    """Each way of being hostile, by one key of ten, from the first request on."""
    found = keys.compared(keys.ALONE, SEEDS, REQUESTS)
    points = max(abs(row["moved_points"]) for row in found)
    cost = max(row["cost"] for row in found)
    attacks.append(Attacks(len(found), points, cost))
    assert points <= keys.MOVED
    assert cost <= keys.COST
