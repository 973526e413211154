"""A zoo that answers by the roll of a die, driven through the engine as the proxy drives it."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from litellm_messplus.core.decision import Decision
from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.engine import Choice, Engine, Question
from litellm_messplus.core.entries import Entry
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.surface import read_surface
from litellm_messplus.costs.price import Price
from tests.support.builders import (
    build_engine,
    build_zoo,
    changed,
    decided,
    example,
    labelled,
    pair,
    settled,
)

DAY = 86_400.0
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


@dataclass(frozen=True)
class Forced:
    """A share of requests that the last model alone can take, of which it satisfies ``rate``."""

    share: float
    rate: float


@dataclass(frozen=True)
class Joining:
    """A model that comes to the zoo with the request of that number."""

    model: Model
    at: int


FREE = Forced(0.0, 0.0)
SURFACES = tuple(
    read_surface(Conversation.of_text(" + ".join(["17"] * terms))) for terms in (3, 30)
)
"""Of a short prompt, and of a long one."""


@dataclass
class Run:
    """What came of it: the choices, and of each request what the user got."""

    engine: Engine
    choices: list[Choice] = field(default_factory=list)
    satisfied: list[float] = field(default_factory=list)
    forced: list[bool] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    """Of all calls of a request, those that no user sees included."""

    @property
    def decisions(self) -> list[Decision]:
        return [choice.decision for choice in self.choices]

    @property
    def served(self) -> list[str]:
        return [decision.chosen for decision in self.decisions]

    def rate(self, since: float = 0.0) -> float:
        return _mean(self.satisfied, since)

    def spent(self) -> float:
        return sum(self.cost)


def _mean(values: Sequence[float], since: float) -> float:
    kept = values[int(since * len(values)) :]
    return sum(kept) / len(kept)


def run(
    models: Sequence[Model],
    *,
    alpha: float,
    requests: int,
    seed: int,
    delay: int = 0,
    unit: float = 1.0,
    answered: float = 1.0,
    forced: Forced = FREE,
    joining: Joining | None = None,
    unseen_labels: bool = True,
) -> Run:
    """Serve ``requests`` prompts in a day; labels come ``delay`` requests late, to a share
    ``answered``; where there are no ``unseen_labels``, to what users see alone.

    Costs are counted in ``unit``.
    """
    prices = {model.name: Price(0.0, unit * model.cost / TOKENS) for model in models}
    engine = build_engine(build_zoo(prices, alpha=alpha), seed)
    known = {model.name: model for model in models}
    differ = any(model.on_long is not None for model in models)
    random, forcing = Random(f"closed loop {seed}"), Random(f"forced {seed}")
    outcome, waiting = Run(engine), deque[list[Entry]]()
    everyone = [*models, joining.model] if joining else list(models)
    for number in range(1, requests + 1):
        if joining is not None and number == joining.at:
            name, cost = joining.model.name, unit * joining.model.cost / TOKENS
            engine.apply(changed(name, price=cost))
            known[name] = joining.model
        # What each would answer does not depend on who is asked.
        features = pair(random.uniform(-1, 1), random.uniform(-1, 1))
        is_long = differ and random.random() < 0.5
        surface = SURFACES[is_long] if differ else None
        verdicts = {model.name: model.satisfies(random.random(), is_long) for model in everyone}
        answers = random.random() < answered
        is_forced = forcing.random() < forced.share
        if is_forced:
            verdicts[models[-1].name] = float(forcing.random() < forced.rate)
        able = (models[-1].name,) if is_forced else engine.zoo.present
        request_id = f"r{number}"
        level, prompt = engine.zoo.levels["default"], Prompt(features, surface)
        question = Question(request_id, level, prompt, 40, able, is_gated=is_forced)
        at = DAY * (number - 1) / requests
        choice = _decide(engine, question, at, counts_unseen=not unseen_labels)
        outcome.choices.append(choice)
        decision, labels = choice.decision, list[Entry]()
        for place, name in enumerate((decision.chosen, *decision.explored)):
            call_id, is_served = f"{request_id}.{place}", place == 0
            engine.apply(settled(name, call_id=call_id, completion_tokens=TOKENS))
            if not answers or not (is_served or unseen_labels):
                continue
            seen = example(
                name,
                request_id=request_id,
                features=features,
                is_exploration=decision.is_exploration,
                surface=surface,
                is_forced=is_forced,
            )
            labels.append(
                labelled(
                    verdicts[name],
                    alpha=alpha,
                    request_id=request_id,
                    call_id=call_id,
                    is_served=is_served,
                    example=seen,
                    is_forced=is_forced,
                )
            )
        outcome.satisfied.append(verdicts[decision.chosen])
        outcome.forced.append(is_forced)
        outcome.cost.append(sum(known[name].cost for name in (decision.chosen, *decision.explored)))
        waiting.append(labels)
        if len(waiting) > delay:
            for entry in waiting.popleft():
                engine.apply(entry)
    return outcome


def _decide(engine: Engine, question: Question, at: float, *, counts_unseen: bool) -> Choice:
    choice = engine.decide(question)
    situation, decision = choice.situation, choice.decision
    entry = decided(
        request_id=question.request_id,
        expected_shortfall=situation.alpha - decision.expected_satisfaction,
        calls=1 + len(decision.explored) if counts_unseen else 1,
        at=at,
    )
    engine.apply(entry)
    return choice
