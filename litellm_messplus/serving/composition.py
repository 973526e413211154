"""The hands of one worker: built around the brain, started, and stopped in an order that loses
nothing."""

from collections.abc import Mapping

from fastapi import APIRouter
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.brain import Brain, Hands
from litellm_messplus.brain.modes import LiveModes
from litellm_messplus.core.encoder import Encoder
from litellm_messplus.core.engine import Engine
from litellm_messplus.learning.keeper import Keeper
from litellm_messplus.runtime.tasks import Closings, Periodic
from litellm_messplus.serving.authentication import ACCESS
from litellm_messplus.serving.deployments.deployment import Failing, shared_path
from litellm_messplus.serving.deployments.gates import Gates
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.deployments.live_zoos import LiveZoos
from litellm_messplus.serving.deployments.metering import Meter, PromptTokens
from litellm_messplus.serving.ends import CallSink
from litellm_messplus.serving.judges import JudgeCalls
from litellm_messplus.serving.litellm_seam import flush_log_events
from litellm_messplus.serving.open_requests import OpenRequests
from litellm_messplus.serving.page import Page
from litellm_messplus.serving.reading import RequestReader
from litellm_messplus.serving.repeating import Explorer
from litellm_messplus.serving.router import RequestRouter
from litellm_messplus.serving.scores import AnswerScores
from litellm_messplus.serving.second import SecondAnswers
from litellm_messplus.serving.served import ServedCalls
from litellm_messplus.serving.surfaces.answers import plain_response_id
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.settings.zoo import Zoo, Zoos

COUNTING_SHARE = 0.4
"""Share of the deadline that a request waits until the tokens of its long prompt are counted."""


class Parts:
    """The parts of one worker process: LiteLLM's hooks use those without an underscore.

    ``engines``, ``position``, ``modes`` and ``keeper`` are the brain's; ``prompt_tokens`` counts
    for the candidates whose tokenizer is available.
    """

    def __init__(
        self,
        settings: MessplusSettings,
        encoder: Encoder,
        engines: dict[str, Engine],
        database: AsyncEngine,
        position: int = 0,
        *,
        prompt_tokens: PromptTokens | None = None,
        modes: LiveModes | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        index, open_requests = DeploymentIndex(), OpenRequests()
        hands = Hands(index.candidate, JudgeCalls, plain_response_id)
        brain = Brain(
            *(settings, encoder, engines, database, hands, position), modes=modes, keeper=keeper
        )
        self.brain, self.counters = brain, brain.counters
        self.zoos: Mapping[str, Zoo] = Zoos(engines)
        counters, closings = brain.counters, Closings(brain.counters)
        self._closings, keep = closings, closings.keep  # closed in the reverse order
        keep(brain)
        self.live = LiveZoos(self.zoos, index, brain.catalog, counters)
        gates = Gates(counters, count_seconds=COUNTING_SHARE * settings.deadline_seconds)
        scores = AnswerScores(settings.zoos, counters)
        sink = CallSink(Meter(self.zoos, index.prices, counters), brain, scores, counters)
        failing = Failing(shared_path(database.url))
        self.served = keep(ServedCalls(open_requests, index, sink, failing, counters))
        closings.then(flush_log_events, "LiteLLM's log events")
        explorer = keep(Explorer(sink, counters))
        self.seconds = SecondAnswers(settings.zoos, open_requests, index, sink, counters)
        self.router = keep(
            RequestRouter(
                self.zoos,
                self.live,
                brain,
                RequestReader(brain.holds, counters, settings.store_identities),
                gates,
                prompt_tokens or PromptTokens(list(engines), []),
                failing,
                open_requests,
                explorer,
                scores,
                counters,
            )
        )
        self._page = keep(Page(database, engines, brain.modes, brain.watch, counters))
        self.tasks = keep(Periodic(counters))

    def routes(self) -> APIRouter:
        """Return the endpoints under `/messplus`."""
        routes = self.brain.routes(ACCESS)
        routes.include_router(self._page.routes())
        return routes

    def start(self) -> None:
        """Begin in the running event loop."""
        self.brain.start(self.tasks)
        self.live.start(self.tasks)
        self.served.start(self.tasks)

    async def close(self) -> None:
        """Let exploration calls and log events finish, then write everything."""
        await self._closings.close()
