"""A zoo whose models take time, with limits beside alpha, driven as the proxy drives it."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from litellm_messplus.costs.price import Price
from litellm_messplus.deciding.decider import Choice, Engine, Question
from litellm_messplus.deciding.expectations import use_of
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.state.entries import Labelled, LimitedCall, Settled
from tests.support.builders import (
    build_engine,
    build_zoo,
    decided,
    example,
    labelled,
    pair,
    settled,
)

DAY = 86_400.0
TOKENS = 100


@dataclass(frozen=True)
class TimedModel:
    """Satisfies a share ``rate``, at ``cost`` a call, and takes longer than a second in a share
    ``late`` of its calls."""

    name: str
    rate: float
    cost: float
    late: float = 0.0

    def seconds(self, random: Random) -> float:
        return 3.0 if random.random() < self.late else random.uniform(0.2, 0.5)


@dataclass
class LimitedRun:
    """What came of it, request by request."""

    engine: Engine
    choices: list[Choice] = field(default_factory=list)
    satisfied: list[float] = field(default_factory=list)
    late: list[bool] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    """Of all calls of a request, those that no user sees included."""
    at: list[float] = field(default_factory=list)

    @property
    def served(self) -> list[str]:
        return [choice.decision.chosen for choice in self.choices]

    def rate(self, since: float = 0.0) -> float:
        return _mean(self.satisfied, since)

    def late_share(self, since: float = 0.0) -> float:
        return _mean(self.late, since)

    def spent(self, day: int) -> float:
        return sum(
            cost for cost, at in zip(self.cost, self.at, strict=True) if int(at // DAY) == day
        )


def _mean(values: Sequence[float], since: float) -> float:
    kept = values[int(since * len(values)) :]
    return sum(kept) / len(kept)


def run_limited(
    models: Sequence[TimedModel],
    *,
    alpha: float,
    requests: int,
    seed: int,
    days: float = 1.0,
    delay: int = 0,
    answered: float = 1.0,
    **limits: Any,
) -> LimitedRun:
    """Serve ``requests`` spread evenly over so many days; calls end, and labels come, ``delay``
    requests late."""
    prices = {model.name: Price(0.0, model.cost / TOKENS) for model in models}
    engine = build_engine(build_zoo(prices, alpha=alpha, **limits), seed)
    known = {model.name: model for model in models}
    random, outcome = Random(f"limited {seed}"), LimitedRun(engine)
    ending: deque[list[Settled | Labelled]] = deque()
    for number in range(requests):
        at = DAY * days * number / requests
        # What each would answer, and when, does not depend on who is asked.
        features = pair(random.uniform(-1, 1), random.uniform(-1, 1))
        verdicts = {each.name: float(random.random() < each.rate) for each in models}
        seconds = {each.name: each.seconds(random) for each in models}
        is_answered = random.random() < answered
        choice = _decide(engine, Prompt(features, None), f"r{number}", at)
        decision, entries = choice.decision, list[Settled | Labelled]()
        for place, name in enumerate((decision.chosen, *decision.explored)):
            is_served, call_id = place == 0, f"r{number}.{place}"
            is_late = seconds[name] > 1.0
            limited = LimitedCall("default", f"r{number}", at, is_served, is_late, known[name].cost)
            entries.append(
                settled(
                    name,
                    call_id=call_id,
                    completion_tokens=TOKENS,
                    seconds=seconds[name],
                    limited=limited if choice.situation.limits is not None else None,
                )
            )
            if is_answered:
                entries.append(
                    labelled(
                        verdicts[name],
                        alpha=alpha,
                        request_id=f"r{number}",
                        call_id=call_id,
                        is_served=is_served,
                        example=example(name, request_id=f"r{number}", features=features),
                    )
                )
        outcome.choices.append(choice)
        outcome.at.append(at)
        outcome.satisfied.append(verdicts[decision.chosen])
        outcome.late.append(seconds[decision.chosen] > 1.0)
        outcome.cost.append(sum(known[name].cost for name in (decision.chosen, *decision.explored)))
        ending.append(entries)
        if len(ending) > delay:
            for entry in ending.popleft():
                engine.apply(entry)
    return outcome


def _decide(engine: Engine, prompt: Prompt, request_id: str, at: float) -> Choice:
    level = engine.zoo.levels["default"]
    question = Question(request_id, level, prompt, 40, engine.zoo.present, at=at)
    choice = engine.decide(question)
    decision = choice.decision
    entry = decided(
        request_id=request_id,
        expected_shortfall=choice.situation.alpha - decision.expected_satisfaction,
        calls=1 + len(decision.explored),
        at=at,
        expected_use=use_of(choice.situation, decision),
    )
    engine.apply(entry)
    return choice
