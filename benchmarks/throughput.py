"""Throughput of one proxy worker with the plugin, relative to the same proxy without it.

LiteLLM's own adaptive router is measured too, as the cost of a learned choice elsewhere.

    python -m benchmarks.throughput [ROUNDS] [--shared] [--json] [--arms watch with adaptive]

Prompts all differ, as a cache of the encoder would else answer for it.
The budget of a zoo that only watches is 0.95.

Real proxies over one upstream take turns in short slices, so that a drift of the machine affects
all (observed: from 10 to 18 ms of CPU per request within a minute); the ratio is taken per slice.
Two processes of the very same proxy differ by up to 7 % of CPU for as long as they live (by memory
layout and hash seeds), so each of the PAIRS is started anew. The budget is a median ratio of 0.9
over all of them.

A worker has one core to itself, for all of its threads, including the one that writes the log;
client and upstream have the rest. On two cores for all (--shared) it was 1.14 to 1.16 times the CPU
per request instead of 1.07, and a ratio of 0.86 to 0.88 instead of 0.93: the loop waits three times
as often as without the plugin, and most likely finds its caches cold, since the scheduler runs the
others on its core in the meantime.
"""

import argparse
import asyncio
import copy
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.patience import until
from tests.support.ports import free_port
from tests.support.proxy import Config, Proxy, database_url, without_plugin, zoo_config

PAIRS = 4
SLICE_SECONDS = 1.5
CONCURRENT = 8
BUDGETS = {"with": 0.9, "watch": 0.95}
CHARACTERS = 1_036
"""Length of a prompt."""


def different_prompts(seed: int = 0) -> Iterator[str]:
    """Yield prompts of ``CHARACTERS``, of different words each."""
    draws = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(draws.choices(letters, k=draws.randint(2, 9))) for _ in range(2000)]
    while True:
        words = " ".join(draws.choices(vocabulary, k=CHARACTERS // 3))
        yield f"{words[: CHARACTERS - 1]}?"


@contextmanager
def upstream(niceness: int = 0) -> Iterator[str]:
    """Start the upstream, and yield its URL. With a niceness, it runs below the proxies."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.upstream", str(port)]
    process = subprocess.Popen(["nice", "-n", str(niceness), *command])
    try:
        until(lambda: _answers(port))
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def on_cores(cores: Collection[int]) -> Iterator[None]:
    """Bind this process, and any started in the block, to these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cores_of(is_shared: bool) -> tuple[set[int], set[int]]:
    """Choose the cores of the worker, and those of client and upstream."""
    every = os.sched_getaffinity(0)
    if is_shared:
        return every, every
    first = min(every)
    if every == {first}:
        raise SystemExit("a worker on a core of its own needs two cores; see --shared")
    return {first}, every - {first}


def _answers(port: int) -> bool:
    try:
        return httpx.post(f"http://127.0.0.1:{port}/", json={}).status_code == 200
    except httpx.TransportError:
        return False


def watched(config: Config) -> Config:
    """Serve as before, by LiteLLM's own choice, and decide in shadow."""
    watching = copy.deepcopy(config)
    for zoo in watching["messplus"]["zoos"].values():
        zoo |= {"mode": "watch", "before": "litellm"}
    return watching


def behind(config: Config, router: str, **settings: Any) -> Config:
    """Put the same models, each under a name of its own, behind one of LiteLLM's own routers,
    without the plugin."""
    members = without_plugin(config)
    for tier, member in enumerate(members["model_list"], 1):
        member["model_name"] = member["litellm_params"]["model"].rsplit("/", 1)[1]
        member["model_info"] |= {f"{router}_preferences": {"quality_tier": tier}}
        member["model_info"] |= {"litellm_routing_preferences": {"quality_tier": tier}}
    names = [member["model_name"] for member in members["model_list"]]
    params = {
        "model": f"auto_router/{router}",
        f"{router}_default_model": names[-1],
        f"{router}_config": {"available_models": names, **settings},
    }
    members["model_list"].append({"model_name": "zoo", "litellm_params": params})
    return members


def with_adaptive_router(config: Config) -> Config:
    """Put the same models behind LiteLLM's own adaptive router."""
    return behind(config, "adaptive_router")


@dataclass(frozen=True)
class Slice:
    """The figures of one proxy: requests per second, and the CPU seconds per request of its process
    and of its brain's, 0 if it has none."""

    rate: float
    cpu: float
    brain_cpu: float


BRAIN = b"litellm_messplus.brain.process"
"""The module that a brain's process runs, as its command line names it."""


def cpu_seconds(process: int) -> float:
    """Read the user and system time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def brains(process: int) -> Iterator[int]:
    """Yield the brains among a process's descendants."""
    with suppress(OSError):  # it has just ended
        for thread in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                is_brain = BRAIN in Path(f"/proc/{child}/cmdline").read_bytes()
                yield from [child] if is_brain else brains(child)


def brain_seconds(process: int) -> float:
    """Read the time of the brains among a process's descendants."""
    return sum(map(cpu_seconds, brains(process)))


async def slice_of(
    proxy: Proxy, prompts: Iterator[str] | None = None, seconds: float = SLICE_SECONDS
) -> Slice:
    """Put load on one proxy for a slice's time; with prompts that all differ, unless given."""
    prompts = different_prompts(time.monotonic_ns()) if prompts is None else prompts
    headers = {"authorization": f"Bearer {proxy.master_key}"}
    started = time.perf_counter()
    ends = started + seconds

    async def ask(client: httpx.AsyncClient) -> int:
        answered = 0
        while time.perf_counter() < ends:
            messages = [{"role": "user", "content": next(prompts)}]
            body = {"model": "zoo", "messages": messages}
            answer = await client.post("/v1/chat/completions", json=body)
            answer.raise_for_status()
            answered += 1
        return answered

    before, learned = cpu_seconds(proxy.process_id), brain_seconds(proxy.process_id)
    async with httpx.AsyncClient(base_url=proxy.url, headers=headers, timeout=60) as client:
        answered = sum(await asyncio.gather(*(ask(client) for _ in range(CONCURRENT))))
    took = time.perf_counter() - started
    used = cpu_seconds(proxy.process_id) - before
    learned = brain_seconds(proxy.process_id) - learned
    return Slice(answered / took, used / answered, learned / answered)


def with_brain_inside(config: Config) -> Config:
    """Fold the log in the worker itself."""
    return {**config, "messplus": {**config["messplus"], "brain": "inside"}}


SPARE = "spare"
"""The arm whose brain runs on the cores that the worker does not have; that of any other shares
the worker's core."""
ARMS = {
    "with": lambda config: config,
    SPARE: lambda config: config,
    "inside": with_brain_inside,
    "watch": watched,
    "without": without_plugin,
    "adaptive": with_adaptive_router,
}
"""Arms by printed name: the change to the configuration."""
Round = Mapping[str, Slice]


def compare(
    rounds: int, folder: Path, arms: Sequence[str], *, is_shared: bool = False
) -> list[Round]:
    """Measure slices of each arm by its name, one per round after a warm-up, one process each."""
    workers, others = cores_of(is_shared)
    with on_cores(others), upstream() as url, ExitStack() as stack:
        config = zoo_config(url, folder, zoo={"alpha": 0.8})
        proxies = {}
        for name in arms:
            (folder / name).mkdir()
            with on_cores(workers):
                own = {**config, "messplus": {**config["messplus"]}}
                own["messplus"]["database"] = database_url(folder / name)
                proxies[name] = Proxy(ARMS[name](own), folder / name).start()
            for brain in brains(proxies[name].process_id) if name == SPARE else ():
                os.sched_setaffinity(brain, others)
            stack.callback(proxies[name].stop)
        measured: list[Round] = []
        for number in range(rounds + 1):
            order = [*arms[number % len(arms) :], *arms[: number % len(arms)]]
            slices = {name: asyncio.run(slice_of(proxies[name])) for name in order}
            measured.append(slices)
            _say("   ".join(f"{name} {shown(slices[name])}" for name in arms))
        return measured[1:]


def shown(measured: Slice) -> str:
    return f"{measured.rate:6.1f}/s {measured.cpu * 1000:5.2f} ms CPU"


def _say(progress: str) -> None:
    """Print where the measurement stands, apart from its result."""
    print(progress, file=sys.stderr, flush=True)


def ratios(rounds: Sequence[Round], arm: str) -> tuple[list[float], float, float]:
    """Compare an arm with the one without the plugin: all ratios of rates, and the medians of the
    CPU of the worker and of its brain over the plain request's."""
    rates = [each[arm].rate / each["without"].rate for each in rounds]
    cpu = statistics.median(each[arm].cpu / each["without"].cpu for each in rounds)
    brain = statistics.median(each[arm].brain_cpu / each["without"].cpu for each in rounds)
    return rates, cpu, brain


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", type=int, nargs="?", default=16)
    parser.add_argument("--shared", action="store_true", help="all processes on all cores")
    parser.add_argument("--json", action="store_true", help="print the medians as JSON")
    others = ["with", "watch", "adaptive", SPARE, "inside"]
    parser.add_argument("--arms", nargs="+", choices=others, default=others[:3])
    given = parser.parse_args()
    arms = [*given.arms, "without"]
    rounds: list[Round] = []
    for number in range(1, PAIRS + 1):
        _say(f"set {number} of {PAIRS}")
        with tempfile.TemporaryDirectory() as folder:
            rounds += compare(given.rounds, Path(folder), arms, is_shared=given.shared)
    figures, is_missed = {}, False
    for arm in given.arms:
        rates, cpu, brain = ratios(rounds, arm)
        low, median, high = statistics.quantiles(rates, n=4)
        figures[arm] = {"throughput": median, "cpu": cpu, "brain_cpu": brain}
        is_missed |= median < BUDGETS.get(arm, 0.0)
        if not given.json:
            print(f"{arm}: CPU seconds a request, median ratio {cpu:.3f}; brain {brain:.3f}")
            print(f"{arm}: ratio {median:.3f}, half of all in {low:.3f} to {high:.3f}")
            print(f"{arm}: budget {BUDGETS[arm]}" if arm in BUDGETS else "")
    if given.json:
        print(json.dumps(figures))
    raise SystemExit(is_missed)


if __name__ == "__main__":
    main()
