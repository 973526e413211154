"""One stream, over all seeds: the policy asked for, every baseline, and the yardsticks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from litellm_messplus.prediction.encoder import Encoder
from litellm_messplus.replay.database import Filling
from litellm_messplus.replay.driver import Run, build_engine, teach
from litellm_messplus.replay.files import read_file
from litellm_messplus.replay.hindsight import Hindsight, educated_guess
from litellm_messplus.replay.recording import (
    Recording,
    ReplayError,
    arrange,
    check_same,
    concatenate,
)
from litellm_messplus.replay.stress import Answers, Degrade, Stress, answers
from litellm_messplus.replay.summary import Outcome, ReplayReport, Score, certified, window_figures
from litellm_messplus.settings.schema import ZooSettings

Baseline = Callable[["Session"], Outcome | None]


@dataclass(frozen=True)
class Plan:
    """A plan of what to replay, and how. ``V`` and ``c`` are read by policy `paper` alone, as a
    baseline too; ``degrade`` is as the user wrote it, for the models are known later; ``lessons``
    is a file that the policy is taught before each run."""

    policy: str = "adaptive"
    V: float = 1e-4
    c: float = 0.1
    seeds: int = 20
    stress: Stress = field(default_factory=Stress)
    degrade: str | None = None
    in_order: bool = False
    window: int | None = None
    with_baselines: bool = True
    confidence: float | None = None
    lessons: str | None = None

    def settings(self, policy: str, alpha: float) -> ZooSettings:
        """Build the settings of a zoo under that policy. Raises ReplayError for a value that is not
        allowed."""
        given: dict[str, Any] = {"alpha": alpha, "policy": policy}
        if policy == "paper":
            given |= {"V": self.V, "c": self.c}
        elif self.confidence is not None:
            given["confidence"] = self.confidence
        try:
            return ZooSettings.model_validate(given)
        except ValidationError as error:
            wrong = error.errors()[0]
            raise ReplayError(
                f"--{wrong['loc'][0]}: given {wrong['input']!r}; allowed: {wrong['msg']}"
            ) from error


@dataclass(frozen=True, eq=False)
class Session:
    """One seed's requests, in their order, and what would be said of every call."""

    recording: Recording
    answers: Answers
    seed: int


class Experiment:
    """An experiment, whose ``parts`` follow one another in one stream."""

    def __init__(
        self, parts: Sequence[Recording], alpha: float, plan: Plan, encoder: Encoder
    ) -> None:
        self.parts = parts
        self.alpha = alpha
        self.settings = plan.settings(plan.policy, alpha)
        self.encoder = encoder
        self.whole = concatenate(parts)
        self._filling = None if self.whole.is_known.all() else Filling(self.whole)
        degrade = plan.degrade and Degrade.parse(plan.degrade, self.whole.models)
        self.stress = replace(plan.stress, degrade=degrade or None)
        self.plan = plan
        self.lessons = None if plan.lessons is None else read_file(Path(plan.lessons), encoder)
        if self.lessons is not None:
            check_same(self.whole, self.lessons)
        self.baselines = self._baselines() if plan.with_baselines else {}
        self.outcomes: list[Outcome] = []

    @property
    def runs(self) -> int:
        """The number of runs to come, for a progress bar."""
        return self.plan.seeds * (1 + len(self.baselines))

    def go(self, advance: Callable[[], None] = lambda: None) -> ReplayReport:
        """Run all runs; ``advance`` is called after each. The policy's own stay in ``outcomes``."""
        found: dict[str, list[Outcome | None]] = {name: [] for name in self.baselines}
        hindsight = []
        for session in self._sessions():
            hindsight.append(
                Hindsight.of(session.answers.truth, session.recording.cost, self.alpha)
            )
            self.outcomes.append(self._replay(session, self.settings))
            advance()
            for name, baseline in self.baselines.items():
                found[name].append(baseline(session))
                advance()
        return self._report(hindsight, found)

    def _sessions(self) -> Iterator[Session]:
        """Yield the sessions. Seed s shuffles with ``default_rng(s)``; the same generator then
        draws the stress. What is not known of a log is drawn by a generator of its own."""
        starts = np.cumsum([0] + [len(part) for part in self.parts[:-1]])
        for seed in range(self.plan.seeds):
            generator = np.random.default_rng(seed)
            orders = arrange(self.parts, generator, in_order=self.plan.in_order)
            recording = self._outcomes(seed).take(
                np.concatenate([order + start for order, start in zip(orders, starts, strict=True)])
            )
            given = answers(recording.satisfied, recording.models, self.stress, generator)
            yield Session(recording, given, seed)

    def _outcomes(self, seed: int) -> Recording:
        if self._filling is None:
            return self.whole
        return self._filling.drawn(np.random.default_rng([seed, 2]))

    def _replay(self, session: Session, settings: ZooSettings) -> Outcome:
        """Replay a session; the engine is told the largest of the stream's first row, which no seed
        changes."""
        engine = build_engine(self.whole, settings, self.encoder, session.seed)
        if self.lessons is not None:
            teach(engine, self.lessons)
        return Run(engine, session.recording, session.answers, self.stress.delay).go()

    def _baselines(self) -> dict[str, Baseline]:
        paper = self.plan.settings("paper", self.alpha)
        found: dict[str, Baseline] = {
            "paper": lambda session: self._replay(session, paper),
            "educated_guessing": self._guess,
        }
        if self.plan.policy == "paper":
            del found["paper"]
        return found

    def _guess(self, session: Session) -> Outcome | None:
        truth, cost = session.answers.truth, session.recording.cost
        shares = educated_guess(truth.mean(axis=0), self.alpha)
        if shares is None:
            return None
        draws = np.random.default_rng([session.seed, 1])
        return Outcome.of_served(draws.choice(len(shares), len(cost), p=shares), truth, cost)

    def _report(
        self, hindsight: list[Hindsight], found: dict[str, list[Outcome | None]]
    ) -> ReplayReport:
        alpha, models = self.alpha, self.whole.models
        return ReplayReport(
            file=self.whole.name,
            unit=self.whole.unit,
            policy=self.plan.policy,
            requests=len(self.whole),
            score=Score.of(self.outcomes, models, alpha),
            hindsight=hindsight,
            baselines={name: _score(runs, models, alpha) for name, runs in found.items()},
            windows=self._windows(),
            notes=self._notes(),
            certified=self._certified(),
        )

    def _certified(self) -> dict[str, float]:
        if self.plan.confidence is None:
            return {}
        return certified(self.outcomes, self.alpha, self.plan.confidence)

    def _notes(self) -> tuple[str, ...]:
        drawn = () if self._filling is None else (self._filling.note,)
        return (*drawn, *self.whole.notes)

    def _windows(self) -> dict[str, Any]:
        if self.plan.window is None:
            return {}
        degrade = self.stress.degrade
        change = None if degrade is None else degrade.first(len(self.whole))
        return window_figures(self.outcomes, self.alpha, self.plan.window, change)


def _score(outcomes: Sequence[Outcome | None], models: Sequence[str], alpha: float) -> Score | None:
    """Score a baseline; None where it could not be run under some seed."""
    possible = [outcome for outcome in outcomes if outcome is not None]
    return Score.of(possible, models, alpha) if len(possible) == len(outcomes) else None
