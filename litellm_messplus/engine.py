"""The engine: decides for one zoo, and folds the log into what it decides from.

The proxy and the replay are two drivers of this one class, so that what a replay shows is what
production does.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from litellm_messplus.costs.token_estimator import TokenEstimator
from litellm_messplus.learning.entries import Decided, Entry
from litellm_messplus.learning.zoo_state import ZooState
from litellm_messplus.prediction.encoder import Encoder, Features
from litellm_messplus.prediction.linear_heads import LinearHeads
from litellm_messplus.routing import paper
from litellm_messplus.routing.decision import Decision, Estimate, Situation
from litellm_messplus.routing.exploration import draw
from litellm_messplus.settings.schema import ServiceLevel
from litellm_messplus.zoo import Zoo

logger = logging.getLogger(__name__)


class Engine:
    """``state`` is exactly the fold of the log so far; requests decided since are only counted."""

    def __init__(self, zoo: Zoo, encoder: Encoder, seed: int) -> None:
        self.zoo = zoo
        self.encoder = encoder
        self._seed = seed
        self.state = self.empty_state()
        self._unfolded: dict[str, str] = {}
        self._in_flight: Counter[str] = Counter()

    def empty_state(self) -> ZooState:
        """The state before any request."""
        settings = self.zoo.settings
        heads = LinearHeads(
            self.zoo.candidates,
            self.encoder.dimension,
            learning_rate=settings.learning_rate,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
        )
        estimators = {name: TokenEstimator() for name in self.zoo.candidates}
        return ZooState(self.encoder.name, heads, estimators)

    def situation(
        self,
        level: ServiceLevel,
        features: Features,
        prompt_characters: int,
        candidates: Sequence[str],
    ) -> Situation:
        """What the policy is told about a request that any of ``candidates`` could serve now."""
        state = self.state.level(level.name)
        t = state.requests + self._in_flight[level.name] + 1
        return Situation(
            t=t,
            queue=state.queue,
            estimates=self._estimates(features, prompt_characters, candidates),
            largest=self.zoo.largest,
            exploration_draw=draw(self._seed, f"{self.zoo.name}/{level.name}", t),
        )

    def decide(self, request_id: str, level: ServiceLevel, situation: Situation) -> Decision:
        """Decide, and number the request: it counts in ``t`` from now on."""
        decision = paper.decide(situation, V=level.V, c=level.c)
        self._unfolded[request_id] = level.name
        self._in_flight[level.name] += 1
        return decision

    def forget(self, request_id: str) -> None:
        """Count it as in flight no longer: it is in the log, or will never be."""
        level = self._unfolded.pop(request_id, None)
        if level is not None:
            self._in_flight[level] -= 1

    def apply(self, entry: Entry) -> None:
        """Fold one entry of the log in."""
        if isinstance(entry, Decided):
            self.forget(entry.request_id)
        self.state.apply(entry)

    def _estimates(
        self, features: Features, prompt_characters: int, candidates: Sequence[str]
    ) -> tuple[Estimate, ...]:
        satisfactions = self.state.heads.predict(features, candidates)
        return tuple(
            Estimate(name, self._cost(name, prompt_characters), satisfaction)
            for name, satisfaction in zip(candidates, satisfactions, strict=True)
        )

    def _cost(self, candidate: str, prompt_characters: int) -> float:
        estimator = self.state.estimators[candidate]
        return self.zoo.prices[candidate].of(
            estimator.prompt_tokens(prompt_characters), estimator.completion_tokens.value
        )


def fold(engines: Mapping[str, Engine], entry: Entry) -> bool:
    """Fold an entry into the engine of its zoo; False where that failed, which is logged.

    One entry that makes no sense must not hold up the log, now or at any later start. Entries of a
    zoo that is no longer configured are passed over.
    """
    engine = engines.get(entry.zoo)
    if engine is None:
        return True
    try:
        engine.apply(entry)
    except Exception:
        logger.exception("an entry of the log could not be folded in: %r", entry)
        return False
    return True
