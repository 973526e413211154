"""The engine: decides for one zoo, and folds the log into what it decides from.

The proxy and the replay are two drivers of this one class, so that what a replay shows is what
production does.
"""

import logging
import math
from collections.abc import Mapping, Sequence

from litellm_messplus.costs.token_estimator import TokenEstimator
from litellm_messplus.learning.entries import Decided, Entry
from litellm_messplus.learning.policies import build_policy
from litellm_messplus.learning.verdict import Rule
from litellm_messplus.learning.zoo_state import ZooState
from litellm_messplus.prediction.encoder import Encoder, Features
from litellm_messplus.prediction.length_head import LengthHead
from litellm_messplus.routing.aim import aim
from litellm_messplus.routing.decision import Decision, Estimate, Situation
from litellm_messplus.routing.exploration import draw
from litellm_messplus.settings.schema import ServiceLevel
from litellm_messplus.zoo import Zoo

logger = logging.getLogger(__name__)


class Engine:
    """``state`` is exactly the fold of the log so far. Requests decided since are numbered, and
    count in the backlog with what is expected of them; ``newest`` holds each level's last.

    ``price_factors`` is set from outside, where prices are measured: by it a candidate's price is
    multiplied, 1 unless it has one. It is no part of the fold.
    """

    def __init__(self, zoo: Zoo, encoder: Encoder, seed: int) -> None:
        self.zoo = zoo
        self.encoder = encoder
        self._seed = seed
        self.state = self.empty_state()
        self.newest: dict[str, Decision] = {}
        self.price_factors: dict[str, float] = {}
        self._unfolded: dict[str, dict[str, float]] = {level: {} for level in zoo.levels}

    def empty_state(self) -> ZooState:
        """The state before any request."""
        encoder = self.encoder
        policy = build_policy(
            self.zoo.settings, self.zoo.candidates, encoder.dimension, is_fast=encoder.is_fast
        )
        estimators = {name: TokenEstimator() for name in self.zoo.candidates}
        lengths = LengthHead(encoder.dimension)
        rule = Rule(self.zoo.settings.labels.precedence)
        return ZooState(encoder.name, rule, policy, estimators, lengths)

    def situation(
        self,
        level: ServiceLevel,
        features: Features | None,
        prompt_characters: int,
        candidates: Sequence[str],
        most_completion_tokens: float = math.inf,
        prompt_tokens: Mapping[str, float] | None = None,
    ) -> Situation:
        """What the policy is told about a request that any of ``candidates`` could serve now.

        Without ``features``, satisfactions are the running means. No answer is expected to be
        longer than ``most_completion_tokens``, which the request allows. ``prompt_tokens`` are
        those of the candidates for which they were counted; else the characters tell.
        """
        unfolded = self._unfolded[level.name]
        t = self.state.requests[level.name] + len(unfolded) + 1
        stream = f"{self.zoo.name}/{level.name}"
        return Situation(
            t=t,
            alpha=self._aim(level),
            queue=self.state.policy.queue(level.name),
            in_flight=sum(unfolded.values()),
            estimates=self._estimates(
                features,
                {
                    name: (prompt_tokens or {}).get(name) or self._tokens(name, prompt_characters)
                    for name in candidates
                },
                most_completion_tokens,
            ),
            largest=self.zoo.largest,
            exploration_draw=draw(self._seed, stream, t),
            choice_draw=draw(self._seed, f"{stream}/choice", t),
        )

    def decide(self, request_id: str, level: ServiceLevel, situation: Situation) -> Decision:
        """Decide, and number the request: it counts in ``t`` from now on."""
        decision = self.state.policy.decide(level, situation)
        expected_shortfall = situation.alpha - decision.expected_satisfaction
        self._unfolded[level.name][request_id] = expected_shortfall
        self.newest[level.name] = decision
        return decision

    def forget(self, request_id: str) -> None:
        """Count it as in flight no longer: it is in the log, or will never be."""
        for unfolded in self._unfolded.values():
            unfolded.pop(request_id, None)

    def apply(self, entry: Entry) -> None:
        """Fold one entry of the log in."""
        if isinstance(entry, Decided):
            self.forget(entry.request_id)
        self.state.apply(entry)

    def _aim(self, level: ServiceLevel) -> float:
        return aim(
            level.alpha,
            margin=level.margin,
            answered=self.state.policy.answered_requests(level.name),
            label_noise=level.label_noise,
        )

    def _estimates(
        self,
        features: Features | None,
        prompt_tokens: Mapping[str, float],
        most_completion_tokens: float,
    ) -> tuple[Estimate, ...]:
        """Of the candidates that ``prompt_tokens`` names."""
        satisfactions = self.state.policy.predict(features, list(prompt_tokens))
        multiple = self.state.lengths.multiple(features)
        return tuple(
            self._estimate(name, tokens, multiple, most_completion_tokens, satisfaction)
            for (name, tokens), satisfaction in zip(
                prompt_tokens.items(), satisfactions, strict=True
            )
        )

    def _tokens(self, candidate: str, prompt_characters: int) -> float:
        return self.state.estimators[candidate].tokens_of(prompt_characters)

    def _estimate(
        self,
        candidate: str,
        prompt_tokens: float,
        multiple: float,
        most_completion_tokens: float,
        satisfaction: float,
    ) -> Estimate:
        factor = self.price_factors.get(candidate, 1.0)
        estimator, price = self.state.estimators[candidate], self.zoo.prices[candidate]
        usual, seconds = estimator.completion_tokens.value, estimator.seconds.value
        expected = min(usual * multiple, most_completion_tokens)
        return Estimate(
            candidate,
            factor * price.of(prompt_tokens, expected, seconds=seconds),
            factor * price.of(estimator.prompt_tokens.value, usual, seconds=seconds),
            satisfaction,
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
        kind = type(entry).__name__
        logger.exception("the %s at %d could not be folded in", kind, entry.position)
        return False
    return True
