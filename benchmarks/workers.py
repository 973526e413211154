"""How long one brain takes to answer many workers, and what a decision costs it and them.

    python -m benchmarks.workers [--json] [--workers 16] [--rate 40] [--seconds 300]

The brain is the real process, on SQLite. The workers are simulated: in one process each has the
real end of the socket, sends ready requests at random moments, and has them end; a tenth is judged.
"""

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.throughput import cpu_seconds
from litellm_messplus.brain.keeper import Keeper
from litellm_messplus.brain.messages import OPEN, Asked, Asking, Caller, Ended, Replica, WantedLevel
from litellm_messplus.brain.place import brain_settings
from litellm_messplus.core.encoder import Conversation
from litellm_messplus.records import Asker, CallRecord, new_id, served_call_id
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus
from litellm_messplus.serving.deployments.index import build_zoos
from litellm_messplus.serving.link import RemoteRoad
from litellm_messplus.serving.worker_hands import WorkerHands
from litellm_messplus.settings.load import load_settings

JUDGED = 0.1
PRICES = {"small": 1e-7, "medium": 1e-6, "large": 1e-5}
REPLICAS = tuple(Replica(name, f"openai/{name}", False) for name in PRICES)


class SimulatedHands(WorkerHands):
    """Hands without LiteLLM: every caller is an administrator."""

    async def authenticate(self, headers: list[tuple[bytes, bytes]]) -> Caller:
        return Caller(None, is_admin=True)


class SimulatedWorker:
    """A worker that asks at ``rate`` requests a second; ``took`` has the seconds of each answer."""

    def __init__(self, road: RemoteRoad, name: str, rate: float) -> None:
        self.road, self.name, self.rate = road, name, rate
        self.took: list[float] = []
        self.late = 0
        self._draws = random.Random(name)

    async def run(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        async with asyncio.TaskGroup() as asking:
            while time.monotonic() < ends:
                await asyncio.sleep(self._draws.expovariate(self.rate))
                asking.create_task(self._ask())

    async def _ask(self) -> None:
        request_id, words = (
            new_id(),
            " ".join(f"word{self._draws.randrange(999)}" for _ in range(60)),
        )
        asker = Asker(f"call-{request_id}", "key", None, "acompletion", False)
        asked = Asked(
            request_id, "zoo", asker, Conversation.of_text(words), REPLICAS, WantedLevel()
        )
        began = time.perf_counter()
        try:
            order = await self.road.route(asked, OPEN, 0.0)
        except Exception:
            self.late += 1
            return
        self.took.append(time.perf_counter() - began)
        if isinstance(order, str):
            raise TypeError("the zoo watches")
        self.late += not order.ranking
        self.road.ended(Ended(_call(order.record.chosen, request_id), record=order.record))
        if self._draws.random() < JUDGED:
            verdict = json.dumps({"id": request_id, "satisfied": self._draws.random() < 0.8})
            headers = [(b"content-type", b"application/json"), (b"authorization", b"Bearer sk-1")]
            given = Asking("POST", "http", "/messplus/feedback", "", b"", headers, verdict.encode())
            shown = await self.road.answer(self.name, given)
            if shown.status != 200:
                raise RuntimeError(shown.body.decode())


def _call(candidate: str, request_id: str) -> CallRecord:
    return CallRecord(
        call_id=served_call_id(request_id),
        request_id=request_id,
        ended_at=datetime.now(UTC),
        role=CallRole.SERVED,
        status=CallStatus.SUCCESS,
        candidate=candidate,
        deployment_id=candidate.removeprefix("openai/"),
        prompt_tokens=80,
        completion_tokens=100,
        cost=1e-4,
        seconds=1.0,
    )


async def measure(folder: Path, workers: int, rate: float, seconds: float) -> dict[str, float]:
    """Run so many workers against one brain, and return what it took."""
    models = [
        {
            "model_name": "zoo",
            "litellm_params": {"model": f"openai/{name}"},
            "model_info": {"input_cost_per_token": price, "output_cost_per_token": price},
        }
        for name, price in PRICES.items()
    ]
    database = f"sqlite+aiosqlite:///{folder}/messplus.db"
    config = {"messplus": {"database": database, "zoos": {"zoo": {"alpha": 0.75}}}}
    settings = load_settings(config)
    zoos = build_zoos(settings, models)
    given = brain_settings(settings, zoos)
    keeper = Keeper(given)
    await asyncio.to_thread(keeper.begin)
    if keeper.process_id is None:
        raise RuntimeError("another brain runs")
    team = []
    for number in range(workers):
        road = RemoteRoad(given, f"worker-{number}", Counters(), 1.0)
        road.start(SimulatedHands(zoos))
        await road.connected()
        team.append(SimulatedWorker(road, f"worker-{number}", rate))
    await asyncio.gather(*(each.run(2.0) for each in team))  # warm
    for each in team:
        each.took.clear()
        each.late = 0
    of_brain, own = cpu_seconds(keeper.process_id), time.process_time()
    await asyncio.gather(*(each.run(seconds) for each in team))
    own, of_brain = time.process_time() - own, cpu_seconds(keeper.process_id) - of_brain
    for each in team:
        await each.road.close()
    await keeper.close()
    took = sorted(second for each in team for second in each.took)
    cuts = statistics.quantiles(took, n=100)
    return {
        "requests": len(took),
        "late_share": sum(each.late for each in team) / len(took),
        "round_trip_p50_ms": 1000 * cuts[49],
        "round_trip_p95_ms": 1000 * cuts[94],
        "round_trip_p99_ms": 1000 * cuts[98],
        "brain_cpu_ms": 1000 * of_brain / len(took),
        "workers_cpu_ms": 1000 * own / len(took),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--rate", type=float, default=40.0, help="requests a second of each")
    parser.add_argument("--seconds", type=float, default=300.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(Path(folder), chosen.workers, chosen.rate, chosen.seconds))
    if chosen.json:
        print(json.dumps({"sixteen" if chosen.workers == 16 else "workers": found}))
        return
    for name, value in found.items():
        print(f"{name:>20} {value:.4g}")


if __name__ == "__main__":
    main()
