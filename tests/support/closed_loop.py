"""A zoo that answers by the roll of a die, driven through the engine as the proxy drives it."""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from litellm_messplus.costs.price import Price
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.expectations import use_of
from litellm_messplus.deciding.question import Choice, Question
from litellm_messplus.prediction.encoder import Conversation
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.prediction.surface import read_surface
from litellm_messplus.routing.decision import Decision
from litellm_messplus.state.entries import Entry, FailedCall, LimitedCall
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

DAY = 86_400.0
TOKENS = 100
LATE = 1.0
"""Seconds after which an answer is late."""


@dataclass(frozen=True)
class Model:
    """Satisfies a share ``rate`` of all requests, at ``cost`` a call; where ``on_long`` is given,
    that share of the long prompts, which are half of all, and ``rate`` of the others. A share
    ``late`` of its calls takes longer than a second."""

    name: str
    rate: float
    cost: float
    on_long: float | None = None
    late: float = 0.0

    def satisfies(self, drawn: float, is_long: bool) -> float:
        share = self.on_long if is_long and self.on_long is not None else self.rate
        return float(drawn < share)

    def seconds(self, random: Random) -> float:
        return 3.0 if random.random() < self.late else random.uniform(0.2, 0.5)


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
    """What came of it: the choices, and of each request that did not fail what the user got."""

    engine: Engine
    choices: list[Choice] = field(default_factory=list)
    satisfied: list[float] = field(default_factory=list)
    forced: list[bool] = field(default_factory=list)
    late: list[bool] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    """Of all calls of a request, those that no user sees included."""
    at: list[float] = field(default_factory=list)

    @property
    def decisions(self) -> list[Decision]:
        return [choice.decision for choice in self.choices]

    @property
    def served(self) -> list[str]:
        return [decision.chosen for decision in self.decisions]

    def rate(self, since: float = 0.0) -> float:
        return _mean(self.satisfied, since)

    def late_share(self, since: float = 0.0) -> float:
        return _mean(self.late, since)

    def spent(self, day: int | None = None) -> float:
        """In all, or on a day."""
        costs = zip(self.cost, self.at, strict=True)
        return sum(cost for cost, at in costs if day is None or int(at // DAY) == day)


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
    outage: Outage = UP,
    days: float = 1.0,
    **limits: Any,
) -> Run:
    """Serve ``requests`` prompts, spread evenly over so many ``days``; labels come ``delay``
    requests late, to a share ``answered``; where there are no ``unseen_labels``, to what users see
    alone. Where there are ``limits``, calls end as late as that, too. Requests of an ``outage`` are
    decided, and satisfy nobody.

    Costs are counted in ``unit``.
    """
    prices = {model.name: Price(0.0, unit * model.cost / TOKENS) for model in models}
    engine = build_engine(build_zoo(prices, alpha=alpha, **limits), seed)
    known = {model.name: model for model in models}
    differ = any(model.on_long is not None for model in models)
    takes_time = any(model.late for model in models) or bool(limits)
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
        seconds = {each.name: each.seconds(random) if takes_time else None for each in everyone}
        answers = random.random() < answered
        is_forced = forcing.random() < forced.share
        if is_forced:
            verdicts[models[-1].name] = float(forcing.random() < forced.rate)
        able = (models[-1].name,) if is_forced else engine.zoo.present
        request_id, at = f"r{number}", DAY * days * (number - 1) / requests
        level, prompt = engine.zoo.levels["default"], Prompt(features, surface)
        question = Question(request_id, level, prompt, 40, able, is_gated=is_forced, at=at)
        choice = _decide(engine, question, counts_unseen=not unseen_labels)
        outcome.choices.append(choice)
        if number in outage.numbers:
            _fail(engine, request_id, alpha, counts=outage.counts)
            continue
        decision, ends, labels = choice.decision, list[Entry](), list[Entry]()
        for place, name in enumerate((decision.chosen, *decision.explored)):
            call_id, is_served, took = f"{request_id}.{place}", place == 0, seconds[name]
            limited = None
            if took is not None and choice.situation.limits is not None:
                cost, is_late = known[name].cost, took > LATE
                limited = LimitedCall("default", request_id, at, is_served, is_late, cost)
            used: dict[str, Any] = {"seconds": took, "limited": limited}
            ends.append(settled(name, call_id=call_id, completion_tokens=TOKENS, **used))
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
        outcome.late.append((seconds[decision.chosen] or 0.0) > LATE)
        outcome.cost.append(sum(known[name].cost for name in (decision.chosen, *decision.explored)))
        outcome.at.append(at)
        if not limits:
            _apply(engine, ends)
        waiting.append([*ends, *labels] if limits else labels)
        if len(waiting) > delay:
            _apply(engine, waiting.popleft())
    return outcome


def _apply(engine: Engine, entries: Sequence[Entry]) -> None:
    for entry in entries:
        engine.apply(entry)


def _fail(engine: Engine, request_id: str, alpha: float, *, counts: bool) -> None:
    call_id = f"{request_id}.0"
    failed = FailedCall("default", request_id, alpha, is_served=True, is_bought=False)
    engine.apply(settled(call_id=call_id, completion_tokens=None, failed=failed))
    if counts:
        engine.apply(failure_label(request_id, alpha))


def _decide(engine: Engine, question: Question, *, counts_unseen: bool) -> Choice:
    choice = engine.decide(question)
    situation, decision = choice.situation, choice.decision
    entry = decided(
        request_id=question.request_id,
        expected_shortfall=situation.alpha - decision.expected_satisfaction,
        calls=1 + len(decision.explored) if counts_unseen else 1,
        at=question.at,
        expected_use=use_of(situation, decision),
    )
    engine.apply(entry)
    return choice
