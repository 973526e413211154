"""A zoo that answers by the roll of a die, driven through the engine as the proxy drives it."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from litellm_messplus.costs.price import Price
from litellm_messplus.engine import Engine, Question
from litellm_messplus.prediction.encoder import Conversation
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.prediction.surface import read_surface
from litellm_messplus.routing.decision import Decision
from litellm_messplus.state.entries import Labelled
from tests.support.builders import (
    build_engine,
    build_zoo,
    decided,
    example,
    labelled,
    pair,
    settled,
)

TOKENS = 100


@dataclass(frozen=True)
class Model:
    """Satisfies a share ``rate`` of all requests, at ``cost`` a call; where ``on_long`` is given,
    that share of the long prompts, which are half of all, and ``rate`` of the others."""

    name: str
    rate: float
    cost: float
    on_long: float | None = None

    def satisfies(self, drawn: float, is_long: bool) -> float:
        share = self.on_long if is_long and self.on_long is not None else self.rate
        return float(drawn < share)


SURFACES = tuple(
    read_surface(Conversation.of_text(" + ".join(["17"] * terms))) for terms in (3, 30)
)
"""Of a short prompt, and of a long one."""


@dataclass
class Run:
    """What came of it: the decisions, and what the users got."""

    engine: Engine
    decisions: list[Decision] = field(default_factory=list)
    satisfied: list[float] = field(default_factory=list)
    cost: float = 0.0

    @property
    def rate(self) -> float:
        return sum(self.satisfied) / len(self.satisfied)

    @property
    def served(self) -> list[str]:
        return [decision.chosen for decision in self.decisions]


def run(
    models: Sequence[Model],
    *,
    alpha: float,
    requests: int,
    seed: int,
    delay: int = 0,
    unit: float = 1.0,
    answered: float = 1.0,
) -> Run:
    """Serve ``requests`` prompts; labels come ``delay`` requests late, to a share ``answered``.

    Costs are counted in ``unit``.
    """
    prices = {model.name: Price(0.0, unit * model.cost / TOKENS) for model in models}
    engine = build_engine(build_zoo(prices, alpha=alpha), seed)
    known = {model.name: model for model in models}
    differ = any(model.on_long is not None for model in models)
    random = Random(f"closed loop {seed}")
    outcome, waiting = Run(engine), deque[list[Labelled]]()
    for number in range(1, requests + 1):
        # What each would answer does not depend on who is asked.
        features = pair(random.uniform(-1, 1), random.uniform(-1, 1))
        is_long = differ and random.random() < 0.5
        surface = SURFACES[is_long] if differ else None
        verdicts = {model.name: model.satisfies(random.random(), is_long) for model in models}
        answers = random.random() < answered
        request_id, decision = _decide(engine, Prompt(features, surface), number)
        labels = []
        for place, name in enumerate((decision.chosen, *decision.explored)):
            call_id = f"{request_id}.{place}"
            engine.apply(settled(name, call_id=call_id, completion_tokens=TOKENS))
            outcome.cost += known[name].cost
            seen = example(
                name,
                request_id=request_id,
                features=features,
                is_exploration=decision.is_exploration,
                surface=surface,
            )
            labels.append(
                labelled(
                    verdicts[name],
                    alpha=alpha,
                    request_id=request_id,
                    call_id=call_id,
                    is_served=place == 0,
                    example=seen,
                )
            )
        outcome.decisions.append(decision)
        outcome.satisfied.append(verdicts[decision.chosen])
        waiting.append(labels if answers else [])
        if len(waiting) > delay:
            for label in waiting.popleft():
                engine.apply(label)
    return outcome


def _decide(engine: Engine, prompt: Prompt, number: int) -> tuple[str, Decision]:
    level = engine.zoo.levels["default"]
    request_id = f"r{number}"
    question = Question(request_id, level, prompt, 40, engine.zoo.candidates)
    decision = engine.decide(question).decision
    shortfall = level.alpha - decision.expected_satisfaction
    engine.apply(decided(request_id=request_id, expected_shortfall=shortfall))
    return request_id, decision
