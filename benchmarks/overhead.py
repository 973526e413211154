"""What routing adds to a request at a stated load: latency and CPU, next to LiteLLM's own routers.

    python -m benchmarks.overhead [--rate 20] [--rounds 6] [--json] [--write]

Real proxies, one worker each on a core of its own, over an upstream that answers at once; client
and upstream have the other cores. Requests of some 1,000 characters, all different, begin at the
stated rate whether or not earlier ones were answered, and a latency counts from when its request
was due. The proxies take turns in slices of `SECONDS`, so that a drift of the machine affects all,
and the first slice of each is left out. SETS of processes are started anew, since two of the very
same proxy differ for as long as they live. `--write` puts the table into docs/benchmarks.md.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import httpx

from benchmarks.peers import page
from benchmarks.throughput import (
    behind,
    brain_seconds,
    cores_of,
    cpu_seconds,
    different_prompts,
    on_cores,
    upstream,
    watched,
    with_adaptive_router,
)
from tests.support.proxy import Config, Proxy, database_url, without_plugin, zoo_config

SETS = 2
SECONDS = 5.0
TIERS = {"SIMPLE": "tiny", "MEDIUM": "middle", "COMPLEX": "huge", "REASONING": "huge"}
BASE = "LiteLLM alone"
ARMS: Mapping[str, Callable[[Config], Config]] = {
    BASE: without_plugin,
    "LiteLLM's complexity router": partial(behind, router="complexity_router", tiers=TIERS),
    "LiteLLM's quality router": partial(behind, router="quality_router"),
    "LiteLLM's adaptive router": with_adaptive_router,
    "this project, `mode: watch`": watched,
    "this project": lambda config: config,
}
"""Arms by printed name: the change to the configuration."""


@dataclass(frozen=True)
class Arm:
    """One proxy under load: latencies and CPU of a request in milliseconds; ``brain_cpu_ms`` is
    that of the brain's process, 0 without one."""

    requests: int
    median_ms: float
    p99_ms: float
    cpu_ms: float
    brain_cpu_ms: float


@dataclass(frozen=True)
class Slice:
    """One slice of a proxy: the latency of each request, and CPU seconds in total."""

    latencies: Sequence[float]
    cpu: float
    brain_cpu: float


async def load(proxy: Proxy, rate: float, seconds: float) -> Slice:
    """Send requests at that rate, and wait for all of them."""
    headers = {"authorization": f"Bearer {proxy.master_key}"}
    prompts = different_prompts(time.monotonic_ns())
    bodies = [
        {"model": "zoo", "messages": [{"role": "user", "content": next(prompts)}]}
        for _ in range(int(rate * seconds))
    ]
    cpu, brain = cpu_seconds(proxy.process_id), brain_seconds(proxy.process_id)
    async with httpx.AsyncClient(base_url=proxy.url, headers=headers, timeout=60) as client:
        began = time.perf_counter()

        async def ask(number: int) -> float:
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            answer = await client.post("/v1/chat/completions", json=bodies[number])
            answer.raise_for_status()
            return time.perf_counter() - due

        latencies = await asyncio.gather(*map(ask, range(len(bodies))))
    cpu, brain = cpu_seconds(proxy.process_id) - cpu, brain_seconds(proxy.process_id) - brain
    return Slice(latencies, cpu, brain)


def measure(folder: Path, rate: float, rounds: int, seconds: float) -> dict[str, list[Slice]]:
    """Measure slices of each arm in turns, after a warm-up, one process each."""
    workers, others = cores_of(is_shared=False)
    found: dict[str, list[Slice]] = {name: [] for name in ARMS}
    with on_cores(others), upstream() as url, ExitStack() as stack:
        proxies = {}
        for number, (name, change) in enumerate(ARMS.items()):
            own = folder / str(number)
            own.mkdir()
            config = zoo_config(url, own, zoo={"alpha": 0.8})
            config["messplus"]["database"] = database_url(own)
            with on_cores(workers):
                proxies[name] = Proxy(change(config), own).start()
            stack.callback(proxies[name].stop)
        for number in range(rounds + 1):
            for name in [*ARMS][number % len(ARMS) :] + [*ARMS][: number % len(ARMS)]:
                slice_ = asyncio.run(load(proxies[name], rate, seconds))
                if number:
                    found[name].append(slice_)
            print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
    return found


def arm(slices: Sequence[Slice]) -> Arm:
    """Join the slices of an arm."""
    latencies = [1000.0 * each for one in slices for each in one.latencies]
    cuts = statistics.quantiles(latencies, n=100, method="inclusive")
    return Arm(
        requests=len(latencies),
        median_ms=cuts[49],
        p99_ms=cuts[98],
        cpu_ms=1000.0 * sum(each.cpu for each in slices) / len(latencies),
        brain_cpu_ms=1000.0 * sum(each.brain_cpu for each in slices) / len(latencies),
    )


def table(arms: Mapping[str, Arm]) -> Iterator[str]:
    """Yield the lines of the table: LiteLLM alone, and what the others add to it."""
    base = arms[BASE]
    yield "| | median | 99th percentile | CPU of the worker | CPU of the brain |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, one in arms.items():
        pairs = [
            (one.median_ms, base.median_ms),
            (one.p99_ms, base.p99_ms),
            (one.cpu_ms, base.cpu_ms),
        ]
        shown = [
            f"{own:.1f} ms" + ("" if one is base else f" ({own - alone:+.1f})")
            for own, alone in pairs
        ]
        brain = f"{one.brain_cpu_ms:.1f} ms" if one.brain_cpu_ms else ""
        yield f"| {name} | {' | '.join(shown)} | {brain} |"


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rate", type=float, default=20.0, help="requests a second")
    parser.add_argument("--rounds", type=int, default=6, help="slices of each proxy of a set")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    given = parser.parse_args()
    slices: dict[str, list[Slice]] = {name: [] for name in ARMS}
    for _ in range(SETS):
        with tempfile.TemporaryDirectory() as folder:
            found = measure(Path(folder), given.rate, given.rounds, SECONDS)
        for name, more in found.items():
            slices[name] += more
    arms = {name: arm(each) for name, each in slices.items()}
    if given.json:
        print(json.dumps({"rate": given.rate, "arms": {k: asdict(v) for k, v in arms.items()}}))
    else:
        print("\n".join(table(arms)))
    if given.write:
        count = next(iter(arms.values())).requests
        title = f"At {given.rate:g} requests a second, {count:,} requests each:"
        text = "\n".join([title, "", *table(arms)])
        page.PAGE.write_text(page.replaced(page.PAGE.read_text("utf-8"), "overhead", text), "utf-8")


if __name__ == "__main__":
    main()
