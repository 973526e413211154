"""Is a zoo that is on, and turns bad, found out by what is held out, and only then?

    python -m benchmarks.held_out [--share 0.05] [--seeds 20] [--looks 10000] [--json]

A zoo is on for 2,000 requests, of which a share is held out and served as before; then the routed
requests fail. ``back_after`` is the number of requests within which 19 of 20 seeds
have returned, for each failure, with a look every 100 requests. ``false_returns`` is the share of
zoos that return though they are as good as before, at 50 looks, one every 200 requests. As in
service, a look covers the newest 4,000 requests of each arm.

The program ends with status 1 if more than 5 % return without reason.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from random import Random
from typing import Any

from rich.console import Console
from rich.progress import track

from benchmarks.switching import EVERY, FALSE, GOOD, LOOKS, Kind, traffic
from litellm_messplus.store.observed import MOST
from litellm_messplus.switching.way_back import Served, reason_to_return

GIVEN_UP = 10_000
"""Requests after which a return is no longer awaited."""
OFTEN = 0.95
AS_BEFORE = Kind("as before", rate=None)
BAD = (
    Kind("errors 10 %", rate=None, errors=0.1),
    Kind("errors 30 %", rate=None, errors=0.3),
)


def newest(served: Sequence[Served]) -> list[Served]:
    """Select the requests of a look: the newest of each arm, in order."""
    kept: list[Served] = []
    left = {True: MOST, False: MOST}
    for each in reversed(served):
        if left[each.is_routed] > 0:
            left[each.is_routed] -= 1
            kept.append(each)
    return kept[::-1]


def back_after(seed: int, held_out: float, kind: Kind) -> int:
    """Count the requests until a zoo that turned bad has returned."""
    random = Random(f"held out {seed} {kind.name}")
    served = traffic(random, GOOD, AS_BEFORE, 1.0 - held_out)
    while len(served) < GOOD + GIVEN_UP:
        served += traffic(random, EVERY, kind, 1.0 - held_out)
        if reason_to_return(newest(served)) is not None:
            break
    return len(served) - GOOD


def returns_for_nothing(seed: int, held_out: float) -> bool:
    """Tell whether a zoo that is as good as before returns at any look."""
    random, served = Random(f"as before {seed}"), list[Served]()
    for _ in range(LOOKS):
        served += traffic(random, 2 * EVERY, AS_BEFORE, 1.0 - held_out)
        if reason_to_return(newest(served)) is not None:
            return True
    return False


def measure(held_out: float, seeds: int, looks: int) -> dict[str, Any]:
    """Measure everything."""
    console, zoos = Console(stderr=True), max(looks // LOOKS, 1)
    back = {}
    for kind in BAD:
        found = sorted(
            back_after(seed, held_out, kind)
            for seed in track(range(seeds), kind.name, console=console)
        )
        back[kind.name] = found[min(int(OFTEN * seeds), seeds - 1)]
    wrong = sum(
        returns_for_nothing(seed, held_out)
        for seed in track(range(zoos), "as before", console=console)
    )
    return {
        "share": held_out,
        "seeds": seeds,
        "looks": zoos * LOOKS,
        "back_after": back,
        "false_returns": wrong / zoos,
    }


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--looks", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.seeds < 1 or not 0.0 < given.share <= 0.5:
        parser.error("--seeds: 1 or more; --share: above 0, at most 0.5")
    found = measure(given.share, given.seeds, given.looks)
    if given.json:
        print(json.dumps(found))
    else:
        for name, requests in found["back_after"].items():
            print(f"{name}: back after {requests} requests")
        print(f"false_returns: {found['false_returns']:.3g} of the zoos, at {found['looks']} looks")
    return 0 if found["false_returns"] <= FALSE else 1


if __name__ == "__main__":
    sys.exit(main())
