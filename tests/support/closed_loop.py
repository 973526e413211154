"""A zoo that answers by the roll of a die, driven through the engine as the proxy drives it."""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random

from litellm_messplus.costs.price import Price
from litellm_messplus.deciding.decider import Engine, Question
from litellm_messplus.prediction.encoder import Conversation
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.prediction.surface import read_surface
from litellm_messplus.routing.decision import Decision
from litellm_messplus.state.entries import FailedCall, Labelled
from tests.support.builders import (
    build_engine,
    build_zoo,
    changed,
    decided,
    example,
    failure_label,
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


@dataclass(frozen=True)
class Outage:
    """Requests that fail whoever serves them; they count as unsatisfied, or are left apart."""

    numbers: Collection[int] = ()
    counts: bool = False


FREE = Forced(0.0, 0.0)
UP = Outage()
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
    forced: list[bool] = field(default_factory=list)

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
    forced: Forced = FREE,
    joining: Joining | None = None,
    unseen_labels: bool = True,
    outage: Outage = UP,
) -> Run:
    """Serve ``requests`` prompts; labels come ``delay`` requests late, to a share ``answered``;
    where there are no ``unseen_labels``, to what users see alone. Requests of an ``outage`` are
    decided, and satisfy nobody.

    Costs are counted in ``unit``.
    """
    prices = {model.name: Price(0.0, unit * model.cost / TOKENS) for model in models}
    engine = build_engine(build_zoo(prices, alpha=alpha), seed)
    known = {model.name: model for model in models}
    differ = any(model.on_long is not None for model in models)
    random, forcing = Random(f"closed loop {seed}"), Random(f"forced {seed}")
    outcome, waiting = Run(engine), deque[list[Labelled]]()
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
        able = [model.name for model in models[-1:]] if is_forced else engine.zoo.present
        request_id, decision = _decide(
            engine,
            Prompt(features, surface),
            number,
            able,
            is_forced=is_forced,
            counts_unseen=not unseen_labels,
        )
        if number in outage.numbers:
            _fail(engine, request_id, alpha, counts=outage.counts)
            outcome.decisions.append(decision)
            continue
        labels = []
        for place, name in enumerate((decision.chosen, *decision.explored)):
            call_id = f"{request_id}.{place}"
            engine.apply(settled(name, call_id=call_id, completion_tokens=TOKENS))
            outcome.cost += known[name].cost
            if place > 0 and not unseen_labels:
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
                    is_served=place == 0,
                    example=seen,
                    is_forced=is_forced,
                )
            )
        outcome.decisions.append(decision)
        outcome.satisfied.append(verdicts[decision.chosen])
        outcome.forced.append(is_forced)
        waiting.append(labels if answers else [])
        if len(waiting) > delay:
            for label in waiting.popleft():
                engine.apply(label)
    return outcome


def _fail(engine: Engine, request_id: str, alpha: float, *, counts: bool) -> None:
    call_id = f"{request_id}.0"
    failed = FailedCall("default", request_id, alpha, is_served=True, is_bought=False)
    engine.apply(settled(call_id=call_id, completion_tokens=None, failed=failed))
    if counts:
        engine.apply(failure_label(request_id, alpha))


def _decide(
    engine: Engine,
    prompt: Prompt,
    number: int,
    candidates: Sequence[str],
    *,
    is_forced: bool,
    counts_unseen: bool,
) -> tuple[str, Decision]:
    level = engine.zoo.levels["default"]
    request_id = f"r{number}"
    question = Question(request_id, level, prompt, 40, tuple(candidates), is_gated=is_forced)
    decision = engine.decide(question).decision
    shortfall = level.alpha - decision.expected_satisfaction
    calls = 1 + len(decision.explored) if counts_unseen else 1
    engine.apply(decided(request_id=request_id, expected_shortfall=shortfall, calls=calls))
    return request_id, decision
