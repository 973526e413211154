"""The hands of one worker: built around the way to the brain, started, and stopped in an order
that loses nothing."""

from collections.abc import Callable, Mapping
from typing import Protocol, cast

from fastapi import APIRouter

from litellm_messplus.brain.contract import Road
from litellm_messplus.brain.keeper import Keeper
from litellm_messplus.brain.place import BrainSettings, shared_path
from litellm_messplus.records import new_id
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Closings, Periodic
from litellm_messplus.serving.deployments.deployment import Failing
from litellm_messplus.serving.deployments.gates import Gates
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.deployments.live_zoos import LiveZoos
from litellm_messplus.serving.deployments.metering import Meter, PromptTokens
from litellm_messplus.serving.ends import CallSink
from litellm_messplus.serving.forwarding import build_forwarding
from litellm_messplus.serving.link import RemoteRoad
from litellm_messplus.serving.litellm_seam import flush_log_events
from litellm_messplus.serving.open_requests import OpenRequests
from litellm_messplus.serving.reading import RequestReader
from litellm_messplus.serving.repeating import Explorer
from litellm_messplus.serving.router import RequestRouter
from litellm_messplus.serving.scores import AnswerScores
from litellm_messplus.serving.second import SecondAnswers
from litellm_messplus.serving.served import ServedCalls
from litellm_messplus.serving.worker_hands import WorkerHands
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.settings.zoo import Zoo

COUNTING_SHARE = 0.4
"""Share of the deadline that a request waits until the tokens of its long prompt are counted."""
ANSWER_SECONDS = 1.0
"""Seconds beyond the deadline in which the brain must answer; then a request is served safely."""


class Way(Protocol):
    """The way to the brain: in this process, or in another one."""

    worker: str
    road: Road
    zoos: Mapping[str, Zoo]
    counters: Counters

    @property
    def holds(self) -> Callable[[str], bool]: ...

    @property
    def routes_all(self) -> Callable[[str], bool]: ...

    @property
    def safe(self) -> Mapping[str, str]: ...

    def start(self, tasks: Periodic) -> None: ...

    async def close(self) -> None: ...


class BrainApart:
    """The way to a brain in another process, which this worker's ``keeper`` starts if none runs;
    without one, it is a service of its own."""

    def __init__(self, given: BrainSettings, hands: WorkerHands, keeper: Keeper | None) -> None:
        self.worker, self.counters = new_id(), Counters()
        seconds = ANSWER_SECONDS + given.settings.deadline_seconds
        self.link = RemoteRoad(given, self.worker, self.counters, seconds)
        self.road = cast("Road", self.link)
        self._hands, self._keeper = hands, keeper
        self.holds, self.routes_all = hands.holds, hands.routes_all
        self.zoos: Mapping[str, Zoo] = hands.zoos
        self.safe = hands.safe

    def start(self, tasks: Periodic) -> None:
        """Begin in the running event loop."""
        self.link.start(self._hands)
        if self._keeper is not None:
            self._keeper.start(tasks, lambda: self.link.is_connected)

    async def close(self) -> None:
        """Wait until the brain has written what ended; then let it end, if it is this worker's."""
        await self.link.close()
        if self._keeper is not None:
            await self._keeper.close()


class Parts:
    """The parts of one worker process: LiteLLM's hooks use those without an underscore.
    ``prompt_tokens`` counts for the candidates whose tokenizer is available."""

    def __init__(
        self,
        settings: MessplusSettings,
        way: Way,
        prompt_tokens: PromptTokens | None = None,
    ) -> None:
        self.way, self.zoos = way, way.zoos
        index, open_requests, road = DeploymentIndex(), OpenRequests(), way.road
        self.counters = counters = way.counters
        closings = self._closings = Closings(counters)  # closed in the reverse order
        keep = closings.keep
        keep(way)
        self.live = LiveZoos(self.zoos, index, road, way.worker, counters)
        gates = Gates(counters, count_seconds=COUNTING_SHARE * settings.deadline_seconds)
        scores = AnswerScores(settings.zoos, counters)
        sink = CallSink(Meter(self.zoos, index.prices, counters), road, scores, counters)
        failing = Failing(shared_path(settings.database, "failing"))
        self.served = keep(ServedCalls(open_requests, index, sink, failing, counters))
        closings.then(flush_log_events, "LiteLLM's log events")
        explorer = keep(Explorer(sink, counters))
        self.seconds = SecondAnswers(settings.zoos, open_requests, index, sink, counters)
        self.router = keep(
            RequestRouter(
                self.zoos,
                self.live,
                road,
                way.safe,
                way.routes_all,
                RequestReader(way.holds, counters, settings.store_identities),
                gates,
                prompt_tokens or PromptTokens(list(self.zoos), []),
                failing,
                open_requests,
                explorer,
                scores,
                counters,
            )
        )
        self.tasks = keep(Periodic(counters))

    def routes(self) -> APIRouter:
        """Return the endpoints under `/messplus`."""
        return build_forwarding(self.way.road, self.way.worker, self.counters)

    def start(self) -> None:
        """Begin in the running event loop."""
        self.way.start(self.tasks)
        self.live.start(self.tasks)
        self.served.start(self.tasks)

    async def close(self) -> None:
        """Let exploration calls and log events finish, then write everything."""
        await self._closings.close()
