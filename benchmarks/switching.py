"""Does the forecast hold, and does a zoo return in time, and only then?

    python -m benchmarks.switching [--seeds 20] [--sample 0.5] [--looks 10000] [--json]

A simulated zoo is watched for 1,000 requests, with a sample of unseen calls, and then on for 1,000:
``forecast_inside`` is the share of seeds in which the outcome, cost and satisfaction, lies inside
the forecast's intervals, and ``forecast_width`` the width of that of the satisfaction, in points.
Canaries of a tenth turn bad, in one of three ways: ``returned_in_time`` is the share of seeds, for
the worst way, in which the zoo returns within 200 canary requests, with a look every 100 requests.
``false_returns`` is the share of zoos that return though they are as good as before and just at
alpha, each with 50 looks. Twelve keys make all these requests. ``hostile_returns`` is the share of
zoos as good as before that return while a thirteenth key makes half of the requests, all of them
routed, unsatisfied, and half of them failed; each has 50 looks.

The program ends with status 1 if the forecast holds in fewer than 18 of 20 seeds or is wider than 6
points, if fewer than 19 of 20 canaries return in time, or if more than 5 % return without reason or
because of one key.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console
from rich.progress import Progress
from threadpoolctl import threadpool_limits

from benchmarks.switched_zoo import SwitchedZoo
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.switching.way_back import Served, reason_to_return

REQUESTS = 1000
"""Number of requests watched, and of those routed after."""
ALPHA = 0.8
SHARE = 0.1
GOOD = 2000
"""Requests before a canary turns bad."""
EVERY = 100
IN_TIME = 200
LOOKS = 50
"""Looks at each zoo that keeps its promise."""
KEYS = 12
INSIDE, WIDTH, RETURNED, FALSE = 0.9, 6.0, 0.95, 0.05
SHOWN = (
    *("forecast_inside", "forecast_width"),
    *("returned_in_time", "false_returns", "hostile_returns"),
)
"""The printed figures."""

Advance = Callable[[], None]


@dataclass(frozen=True)
class Kind:
    """The way in which the routed requests are served; without a ``rate`` none is judged."""

    name: str
    rate: float | None = ALPHA
    errors: float = 0.01


BAD = (Kind("rate", rate=0.4), Kind("errors", errors=0.3))
KEPT = Kind("kept")


def traffic(random: Random, count: int, kind: Kind, share: float = SHARE) -> list[Served]:
    """Serve so many requests, a share of them routed; the others have 1 % of errors."""
    found = []
    for _ in range(count):
        is_routed = random.random() < share
        errors = kind.errors if is_routed else 0.01
        found.append(
            Served(
                level="default" if is_routed else "default:before",
                alpha=ALPHA,
                is_routed=is_routed,
                satisfaction=_verdict(random, kind.rate) if is_routed else None,
                has_failed=random.random() < errors,
                key=f"key {random.randrange(KEYS)}",
            )
        )
    return found


def hostile(random: Random, count: int) -> list[Served]:
    """Make so many requests of one key, all of them evidence against the router."""
    bad = Served("default", ALPHA, is_routed=True, satisfaction=0.0, key="hostile")
    return [replace(bad, has_failed=random.random() < 0.5) for _ in range(count)]


def _verdict(random: Random, rate: float | None) -> float | None:
    return None if rate is None else float(random.random() < rate)


def is_back_in_time(seed: int, kind: Kind) -> bool:
    """Tell whether a canary that turns bad after a long good time returns in time."""
    random = Random(f"{kind.name} {seed}")
    served = traffic(random, GOOD, KEPT)
    while sum(each.is_routed for each in served[GOOD:]) <= IN_TIME:
        served += traffic(random, EVERY, kind)
        if reason_to_return(served) is not None:
            return sum(each.is_routed for each in served[GOOD:]) <= IN_TIME
    return False


def returns_for_nothing(seed: int, *, is_attacked: bool = False) -> bool:
    """Tell whether a zoo that keeps its promise returns at any look."""
    random, served = Random(f"kept {seed}"), list[Served]()
    for _ in range(LOOKS):
        served += traffic(random, EVERY // 2, KEPT, share=0.5)
        if is_attacked:
            served += hostile(random, EVERY // 2)
        if reason_to_return(served) is not None:
            return True
    return False


async def forecast_of(seed: int, sample: float) -> dict[str, Any]:
    """Watch a zoo, switch it on, and compare the forecast with the outcome."""
    with tempfile.TemporaryDirectory() as folder:
        database = create_engine(f"sqlite+aiosqlite:///{Path(folder) / 'messplus.db'}")
        await migrate(database)
        zoo = SwitchedZoo(database, seed, sample)
        forecast, happened = await zoo.watch(REQUESTS), await zoo.on(REQUESTS)
        await database.dispose()
    satisfied, cost = forecast.satisfaction, forecast.cost
    if satisfied is None or cost is None or happened.satisfaction is None or happened.cost is None:
        return {"seed": seed, "inside": False, "width": 100.0}
    return {
        "seed": seed,
        "inside": satisfied.holds(happened.satisfaction) and cost.holds(happened.cost),
        "width": 100.0 * (satisfied.high - satisfied.low),
        "satisfaction": [satisfied.low, satisfied.estimate, satisfied.high, happened.satisfaction],
        "cost": [cost.low, cost.estimate, cost.high, happened.cost],
        "called": forecast.called,
    }


def measure(seeds: int, sample: float, looks: int, progress: Progress) -> dict[str, Any]:
    """Measure everything."""

    def step(words: str, total: int) -> Advance:
        task = progress.add_task(words, total=total)
        return lambda: progress.advance(task)

    forecasts, advance = [], step("forecast", seeds)
    for seed in range(seeds):
        forecasts.append(asyncio.run(forecast_of(seed, sample)))
        advance()
    back: dict[str, float] = {}
    for kind in BAD:
        advance, found = step(f"way back, {kind.name}", seeds), 0
        for seed in range(seeds):
            found += is_back_in_time(seed, kind)
            advance()
        back[kind.name] = found / seeds
    zoos = max(looks // LOOKS, 1)
    advance, wrong, by_one_key = step("no way back", zoos), 0, 0
    for seed in range(zoos):
        wrong += returns_for_nothing(seed)
        by_one_key += returns_for_nothing(seed, is_attacked=True)
        advance()
    return {
        "seeds": seeds,
        "sample": sample,
        "looks": zoos * LOOKS,
        "forecast_inside": sum(each["inside"] for each in forecasts) / seeds,
        "forecast_width": sum(each["width"] for each in forecasts) / seeds,
        "returned_in_time": min(back.values()),
        "false_returns": wrong / zoos,
        "hostile_returns": by_one_key / zoos,
        "by_reason": back,
        "forecasts": forecasts,
    }


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sample", type=float, default=0.5)
    parser.add_argument("--looks", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.seeds < 1 or not 0.0 <= given.sample <= 1.0:
        parser.error("--seeds: 1 or more; --sample: 0 to 1")
    threadpool_limits(limits=1, user_api="blas")  # as at the proxy's start
    with Progress(console=Console(stderr=True)) as progress:
        found = measure(given.seeds, given.sample, given.looks, progress)
    if given.json:
        print(json.dumps(found))
    else:
        for name in SHOWN:
            print(f"{name}: {found[name]:.3g}")
    is_good = (
        found["forecast_inside"] >= INSIDE
        and found["forecast_width"] <= WIDTH
        and found["returned_in_time"] >= RETURNED
        and max(found["false_returns"], found["hostile_returns"]) <= FALSE
    )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
