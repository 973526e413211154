"""One stream over all seeds: the requested policy, every baseline, and the yardsticks; and
`messplus replay`, which loads, runs and shows several."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError
from rich.console import Console

from litellm_messplus.core.encoder import Encoder
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.replay.files import ANSWER, SCORE, Joining, one_each, read_file, streams
from litellm_messplus.replay.plan import Plan
from litellm_messplus.replay.recording import Matrix, Recording, ReplayError, concatenate
from litellm_messplus.replay.run import (
    Run,
    build_engine,
    drawn_labels,
    simulated_checker,
)
from litellm_messplus.replay.show import draw, table
from litellm_messplus.replay.summary import (
    Hindsight,
    Outcome,
    ReplayReport,
    Score,
    certified,
    educated_guess,
    window_figures,
)
from litellm_messplus.runtime.terminal import progress
from litellm_messplus.settings.schema import ZooSettings

Baseline = Callable[["Session"], Outcome | None]


def settings_of(plan: Plan, policy: str, alpha: float) -> ZooSettings:
    """Build the settings of a zoo under that policy. Raises ReplayError for a value that is not
    allowed."""
    given: dict[str, Any] = {"alpha": alpha, "policy": policy}
    if policy == "paper":
        given |= {"V": plan.V, "c": plan.c}
    elif plan.confidence is not None:
        given["confidence"] = plan.confidence
    if policy == "adaptive":
        given["second_answer"] = plan.reading.second_answer
    try:
        return ZooSettings.model_validate(given)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise ReplayError(
            f"--{wrong['loc'][0]}: given {wrong['input']!r}; allowed: {wrong['msg']}"
        ) from error


@dataclass(frozen=True, eq=False)
class Session:
    """One seed's requests, in their order, with the labels of every possible call."""

    recording: Recording
    labels: Matrix
    seed: int

    def paying(self, share: float) -> "Session":
        """Return the session if a checker reads every answer, at this share of its call's cost."""
        cost = self.recording.cost * (1.0 + share)
        return replace(self, recording=replace(self.recording, cost=cost))


class Experiment:
    """An experiment, whose ``parts`` follow one another in one stream."""

    def __init__(
        self, parts: Sequence[Recording], alpha: float, plan: Plan, encoder: Encoder
    ) -> None:
        self.parts = parts
        self.alpha = alpha
        self.settings = settings_of(plan, plan.policy, alpha)
        self.encoder = encoder
        self.whole = concatenate(parts)
        self.plan = plan
        self.baselines = self._baselines() if plan.with_baselines else {}
        self.outcomes: list[Outcome] = []

    @property
    def runs(self) -> int:
        """The number of runs, for a progress bar."""
        return self.plan.seeds * (1 + len(self.baselines))

    def go(self, advance: Callable[[], None] = lambda: None) -> ReplayReport:
        """Run all runs; ``advance`` is called after each. ``outcomes`` keeps the policy's own."""
        found: dict[str, list[Outcome | None]] = {name: [] for name in self.baselines}
        hindsight = []
        for session in self._sessions():
            recording = session.recording
            hindsight.append(Hindsight.of(recording.satisfied, recording.cost, self.alpha))
            read = session.paying(self.plan.reading.checker_cost)
            self.outcomes.append(self._replay(read, self.settings))
            advance()
            for name, baseline in self.baselines.items():
                found[name].append(baseline(session))
                advance()
        return self._report(hindsight, found)

    def _sessions(self) -> Iterator[Session]:
        """Yield the sessions. Seed s shuffles with ``default_rng(s)``; the same generator then
        draws who answers."""
        starts = np.cumsum([0] + [len(part) for part in self.parts[:-1]])
        for seed in range(self.plan.seeds):
            generator = np.random.default_rng(seed)
            arrange = np.arange if self.plan.in_order else generator.permutation
            orders = [
                start + arrange(len(part)) for part, start in zip(self.parts, starts, strict=True)
            ]
            recording = self.whole.take(np.concatenate(orders))
            labels = drawn_labels(recording.satisfied, self.plan.feedback, generator)
            if self.plan.reading.checker is not None:
                shown = simulated_checker(recording.satisfied, self.plan.reading.checker, seed)
                recording = replace(recording, answers=shown)
            yield Session(recording, labels, seed)

    def _replay(self, session: Session, settings: ZooSettings) -> Outcome:
        """Replay a session; the engine's largest model is that of the stream's first row, whatever
        the seed."""
        engine = build_engine(self.whole, settings, self.encoder, session.seed)
        return Run(engine, session.recording, session.labels, self.plan.delay).go()

    def _baselines(self) -> dict[str, Baseline]:
        paper = settings_of(self.plan, "paper", self.alpha)
        found: dict[str, Baseline] = {
            "paper": lambda session: self._replay(session, paper),
            "educated_guessing": self._guess,
        }
        if self.plan.policy == "paper":
            del found["paper"]
        return found

    def _guess(self, session: Session) -> Outcome | None:
        truth, cost = session.recording.satisfied, session.recording.cost
        shares = educated_guess(truth.mean(axis=0), self.alpha)
        if shares is None:
            return None
        draws = np.random.default_rng([session.seed, 1])
        return Outcome.of_served(draws.choice(len(shares), len(cost), p=shares), truth, cost)

    def _report(
        self, hindsight: list[Hindsight], found: dict[str, list[Outcome | None]]
    ) -> ReplayReport:
        alpha, models = self.alpha, self.whole.models
        confidence, window = self.plan.confidence, self.plan.window
        return ReplayReport(
            file=self.whole.name,
            unit=self.whole.unit,
            policy=self.plan.policy,
            requests=len(self.whole),
            score=Score.of(self.outcomes, models, alpha),
            hindsight=hindsight,
            baselines={name: _score(runs, models, alpha) for name, runs in found.items()},
            windows={} if window is None else window_figures(self.outcomes, alpha, window),
            notes=self.whole.notes,
            certified={} if confidence is None else certified(self.outcomes, alpha, confidence),
        )


def _score(outcomes: Sequence[Outcome | None], models: Sequence[str], alpha: float) -> Score | None:
    """Score a baseline; None if it could not be run under some seed."""
    possible = [outcome for outcome in outcomes if outcome is not None]
    return Score.of(possible, models, alpha) if len(possible) == len(outcomes) else None


# `messplus replay`: load, run, and show.


def load(source: str, encoder: Encoder, *, reads: bool = False) -> Recording:
    """Load the recording in a file; if it ``reads``, its answers too. Raises ReplayError if there
    are none, or if the file cannot be used."""
    found = read_file(Path(source), encoder, reads=reads)
    if reads and found.answers is None:
        raise ReplayError(
            f"{source}: --second-answer: given no columns of answers to single requests; allowed: "
            f"'{found.models[0]}{ANSWER}' or '{found.models[0]}{SCORE}'"
        )
    return found


def run(
    sources: Sequence[str],
    alphas: Sequence[float],
    plan: Plan,
    *,
    joining: Joining,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Replay every stream, and show the reports; ``alphas`` holds one for all streams, or one for
    each. Raises ReplayError for unusable inputs."""
    encoder = HashedNgrams()
    reads = plan.reading.of_file
    recordings = [load(source, encoder, reads=reads) for source in sources]
    joined = streams(recordings, joining)
    experiments = [
        Experiment(stream, alpha, plan, encoder)
        for stream, alpha in zip(joined, one_each(alphas, len(joined)), strict=True)
    ]
    reports = []
    with progress("runs") as bar:
        for experiment in experiments:
            task = bar.add_task(experiment.whole.name, total=experiment.runs)
            reports.append(experiment.go(partial(bar.advance, task)))
    if as_json:
        objects = [report.as_dict() for report in reports]
        print(json.dumps(objects[0] if len(objects) == 1 else objects))
    else:
        for report in reports:
            Console().print(table(report))
    if plot is not None:
        outcomes = [experiment.outcomes for experiment in experiments]
        draw(plot, list(zip(reports, outcomes, strict=True)))
