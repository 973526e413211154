"""What each policy costs where all satisfy alike."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.simulation.policies import EACH_TURN, HELD, POLICIES, Course, Policy, Server
from benchmarks.simulation.world import Assumed, Session, SimulatedZoo, satisfies, sessions
from litellm_messplus.core.caches import Remaining

SESSIONS = 240
"""Of a seed."""
BEFORE = 300
"""Sessions from which it was learned how many turns usually follow."""
LONG = 40
"""Turns from which on a session is a long one; below ``SHORT``, a short one."""
SHORT = 10
HALVINGS = 7
"""Of the price at which a policy satisfies as many as it should. Between the last two prices it is
a mix of both."""
HIGHEST_PRICE = 64.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one policy and seed: cost of an average session, satisfied shares (of all, of
    short and of long sessions), and how often the model changed within a tool loop."""

    cost: float
    satisfied: float
    satisfied_short: float
    satisfied_long: float
    switches_in_loops: float


@dataclass(frozen=True)
class Result:
    """Outcomes of every policy by seed, and the share that all of them satisfied."""

    zoo: SimulatedZoo
    assumed: Assumed
    sessions: int
    targets: tuple[float, ...]
    outcomes: dict[str, tuple[Outcome, ...]]

    @cached_property
    def ratios(self) -> dict[str, tuple[float, float]]:
        """The cost of every policy over that of deciding each turn, mean and deviation."""
        base = np.array([outcome.cost for outcome in self.outcomes[EACH_TURN.name]])
        found = {}
        for name, outcomes in self.outcomes.items():
            ratio = np.array([outcome.cost for outcome in outcomes]) / base
            found[name] = (float(ratio.mean()), float(ratio.std()))
        return found

    @property
    def ratio(self) -> float:
        """The cost of holding over that of deciding each turn."""
        return self.ratios[HELD.name][0]

    def average(self, policy: str) -> Outcome:
        """Average the outcomes over the seeds."""
        rows = [list(asdict(outcome).values()) for outcome in self.outcomes[policy]]
        return Outcome(*np.nanmean(np.array(rows), axis=0).tolist())

    def as_dict(self) -> dict[str, Any]:
        """Convert it for JSON."""
        return {
            "simulation": True,
            "prices": self.zoo.name,
            "unit": self.zoo.unit,
            "models": [asdict(model) for model in self.zoo.models],
            "assumed": asdict(self.assumed),
            "sessions": self.sessions,
            "seeds": len(self.targets),
            "satisfied": float(np.mean(self.targets)),
            "ratio": self.ratio,
            "policies": [
                {
                    "name": name,
                    "ratio": mean,
                    "deviation": deviation,
                    **_finite(self.average(name)),
                }
                for name, (mean, deviation) in self.ratios.items()
            ],
        }


def _finite(outcome: Outcome) -> dict[str, float | None]:
    """Convert it for JSON, which has no word for the share of no sessions."""
    return {name: None if math.isnan(each) else each for name, each in asdict(outcome).items()}


def simulate(
    zoo: SimulatedZoo,
    assumed: Assumed,
    seeds: int,
    *,
    count: int = SESSIONS,
    progress: Callable[[], None] = lambda: None,
) -> Result:
    """Run every policy on the same sessions of every seed; ``progress`` is called after each."""
    outcomes: dict[str, list[Outcome]] = {policy.name: [] for policy in POLICIES}
    targets = []
    for seed in range(seeds):
        remaining = Remaining([model.name for model in zoo.models])
        for session in sessions(BEFORE, 2 * seed + 1, assumed):
            for model in zoo.models:
                remaining.ended(model.name, len(session))
        drawn = list(sessions(count, 2 * seed, assumed))
        server = Server(zoo, assumed, remaining)
        targets.append(_target(zoo, assumed, drawn))
        for policy in POLICIES:
            outcomes[policy.name].append(_at(server, zoo, assumed, drawn, policy, targets[-1]))
            progress()
    return Result(
        zoo,
        assumed,
        count,
        tuple(targets),
        {name: tuple(found) for name, found in outcomes.items()},
    )


def _target(zoo: SimulatedZoo, assumed: Assumed, drawn: Sequence[Session]) -> float:
    """Compute the share halfway between what the cheapest and the best model satisfy alone."""
    cheapest, best = (
        np.mean([_share(zoo, assumed, session, [place]) for session in drawn])
        for place in (0, len(zoo.models) - 1)
    )
    return float((cheapest + best) / 2.0)


def _share(zoo: SimulatedZoo, assumed: Assumed, session: Session, served: Sequence[int]) -> float:
    """Compute the probability that a session is satisfied: any turn may be a critical one."""
    done = {
        place: satisfies(zoo.models[place], session.difficulty, assumed.slope)
        for place in set(served)
    }
    return (sum(done[place] for place in served) / len(served)) ** assumed.critical_steps


def _at(
    server: Server,
    zoo: SimulatedZoo,
    assumed: Assumed,
    drawn: Sequence[Session],
    policy: Policy,
    target: float,
) -> Outcome:
    """Run the policy at the price at which it satisfies that share: halved into, then mixed."""

    def outcome(price: float) -> Outcome:
        return _outcome([server.serve(session, policy, price) for session in drawn], zoo, assumed)

    low, high = 0.0, HIGHEST_PRICE
    below, above = outcome(low), outcome(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0 if low > 0.0 else high / 4.0
        found = outcome(middle)
        if found.satisfied < target:
            low, below = middle, found
        else:
            high, above = middle, found
    return _mixed(below, above, target)


def _mixed(below: Outcome, above: Outcome, target: float) -> Outcome:
    gained = above.satisfied - below.satisfied
    share = (target - below.satisfied) / gained if gained > 0.0 else 1.0
    pairs = zip(asdict(below).values(), asdict(above).values(), strict=True)
    return Outcome(*(low + share * (high - low) for low, high in pairs))


def _outcome(courses: Sequence[Course], zoo: SimulatedZoo, assumed: Assumed) -> Outcome:
    satisfied = np.array([_share(zoo, assumed, each.session, each.served) for each in courses])
    turns = np.array([len(each.session) for each in courses])
    return Outcome(
        cost=float(np.mean([each.cost for each in courses])),
        satisfied=float(satisfied.mean()),
        satisfied_short=_mean(satisfied[turns < SHORT]),
        satisfied_long=_mean(satisfied[turns >= LONG]),
        switches_in_loops=float(np.mean([_switches(each) for each in courses])),
    )


def _mean(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _switches(course: Course) -> int:
    return sum(
        course.served[turn] != course.served[turn - 1]
        for turn in range(1, len(course.served))
        if not course.session.is_user[turn]
    )
