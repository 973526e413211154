"""Does the forecast of a watched zoo hold on recorded requests?

    python -m benchmarks.forecast FILE... --alpha 0.75 [--watch 1000] [--before MODEL]
        [--sample 0.5] [--seeds 20] [--json]

The first requests of every run are served by one model and decided in shadow, as under
`mode: watch`; for a sample, another model is called too, unseen. Then a forecast is made over as
many requests as are left; they are routed, and their outcome is compared with it. Files are read as
by `messplus replay`, each replayed on its own. Satisfaction is the truth of the answers, while the
forecast uses only the labels that had arrived.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.watching import FEWEST, SAMPLE, Watch, WatchedRun, happened
from litellm_messplus.core.encoder import Encoder
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.replay.experiment import Experiment, Session
from litellm_messplus.replay.files import read_file
from litellm_messplus.replay.plan import Plan
from litellm_messplus.replay.recording import Recording, ReplayError
from litellm_messplus.replay.run import build_engine
from litellm_messplus.replay.show import scale
from litellm_messplus.runtime.terminal import progress
from litellm_messplus.runtime.vocabulary import WARM_UP
from litellm_messplus.switching.forecast import Forecast, Happened, Range


@dataclass(frozen=True, slots=True)
class Watching:
    """The requested watch; ``before`` is None for the most expensive model."""

    requests: int
    before: str | None = None
    sample: float = SAMPLE

    def of(self, recording: Recording) -> Watch:
        """Return the watch for the models of a recording. Raises ReplayError for an unknown model,
        and if too few requests are watched, or none is left."""
        least, most = WARM_UP + FEWEST, len(recording) - FEWEST
        if not least <= self.requests <= most:
            raise ReplayError(
                f"--watch: given {self.requests}; allowed: {least} to {most} of the "
                f"{len(recording)} requests of {recording.name}"
            )
        before = recording.largest if self.before is None else self.before
        if before not in recording.models:
            raise ReplayError(f"--before: given '{before}'; allowed: {', '.join(recording.models)}")
        return Watch(self.requests, before, self.sample)


@dataclass(frozen=True, slots=True)
class Held:
    """The forecast of one run, and the outcome after the switch."""

    forecast: Forecast
    happened: Happened

    @property
    def is_satisfaction_inside(self) -> bool:
        """Whether the satisfaction lies in its interval; False if unknown."""
        return _is_inside(self.forecast.satisfaction, self.happened.satisfaction)

    @property
    def is_cost_inside(self) -> bool:
        """Whether the cost lies in its interval; False if unknown."""
        return _is_inside(self.forecast.cost, self.happened.cost)

    @property
    def is_inside(self) -> bool:
        """Whether both lie in their intervals."""
        return self.is_satisfaction_inside and self.is_cost_inside

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "is_inside": self.is_inside,
            "forecast": asdict(self.forecast),
            "happened": asdict(self.happened),
        }


def _is_inside(interval: Range | None, value: float | None) -> bool:
    return interval is not None and value is not None and interval.holds(value)


@dataclass(frozen=True, slots=True)
class WatchReport:
    """The report of one stream, with one element of ``runs`` per seed."""

    file: str
    unit: str
    alpha: float
    watch: Watch
    runs: Sequence[Held]

    def share(self, is_so: Callable[[Held], bool]) -> float:
        """Return the share of runs for which ``is_so`` holds."""
        return fmean(map(is_so, self.runs))

    @property
    def satisfaction_width(self) -> float | None:
        """The width of the satisfaction's interval in points, the mean over the runs that have
        one."""
        found = [one for each in self.runs if (one := each.forecast.satisfaction) is not None]
        return fmean(100.0 * (each.high - each.low) for each in found) if found else None

    @property
    def cost_width(self) -> float | None:
        """The width of the cost's interval, as a share of the estimate."""
        found = [one for each in self.runs if (one := each.forecast.cost) is not None]
        shares = [(each.high - each.low) / each.estimate for each in found if each.estimate > 0.0]
        return fmean(shares) if shares else None

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "file": self.file,
            "alpha": self.alpha,
            "seeds": len(self.runs),
            "watched": self.watch.requests,
            "routed": self.runs[0].happened.requests,
            "before": self.watch.before,
            "sample": self.watch.sample,
            "inside": self.share(lambda each: each.is_inside),
            "satisfaction_inside": self.share(lambda each: each.is_satisfaction_inside),
            "cost_inside": self.share(lambda each: each.is_cost_inside),
            "satisfaction_width": self.satisfaction_width,
            "cost_width": self.cost_width,
            "runs": [each.as_dict() for each in self.runs],
        }


class WatchedExperiment(Experiment):
    """An experiment whose runs are watched first, and then switched on."""

    def __init__(
        self,
        parts: Sequence[Recording],
        alpha: float,
        plan: Plan,
        encoder: Encoder,
        watching: Watching,
    ) -> None:
        super().__init__(parts, alpha, plan, encoder)
        self.watch = watching.of(self.whole)

    def hold(self, advance: Callable[[], None] = lambda: None) -> WatchReport:
        """Run all runs, and compare each one's forecast with the outcome."""
        runs = []
        for session in self._sessions():
            runs.append(self._held(session))
            advance()
        return WatchReport(self.whole.name, self.whole.unit, self.alpha, self.watch, runs)

    def _held(self, session: Session) -> Held:
        engine = build_engine(self.whole, self.settings, self.encoder, session.seed)
        run = WatchedRun(
            engine,
            session.recording,
            session.labels,
            self.watch,
            session.seed,
            self.plan.delay,
        )
        outcome = run.go()
        return Held(run.forecast, happened(outcome, self.watch.requests))


def table(report: WatchReport) -> Table:
    """Lay out one row per run."""
    watch, first = report.watch, report.runs[0]
    estimate = first.happened.cost or 0.0
    factor, unit = scale(estimate, report.unit)
    shown = Table(
        title=f"{report.file}\n{watch.requests} requests watched, served by {watch.before}, "
        f"{watch.sample:.0%} sampled; then {first.happened.requests} routed, alpha "
        f"{report.alpha:g}",
        caption=f"both inside in {report.share(lambda each: each.is_inside):.0%} of the runs: the "
        f"satisfaction in {report.share(lambda each: each.is_satisfaction_inside):.0%}, "
        f"the cost in {report.share(lambda each: each.is_cost_inside):.0%}",
        box=SIMPLE,
        pad_edge=False,
        collapse_padding=True,
    )
    for column in (
        "seed",
        "satisfied: forecast",
        "happened",
        f"cost, {unit}: forecast",
        "happened",
    ):
        shown.add_column(column, justify="right", no_wrap=True)
    shown.add_column("")
    for seed, each in enumerate(report.runs):
        forecast, came = each.forecast, each.happened
        shown.add_row(
            str(seed),
            _shown(forecast.satisfaction, lambda value: f"{value:.1%}"),
            f"{came.satisfaction:.1%}",
            _shown(forecast.cost, lambda value: f"{value * factor:.4g}"),
            f"{(came.cost or 0.0) * factor:.4g}",
            "inside" if each.is_inside else "[bold]outside[/bold]",
        )
    return shown


def _shown(interval: Range | None, words: Callable[[float], str]) -> str:
    if interval is None:
        return "not known"
    return f"{words(interval.estimate)} ({words(interval.low)} to {words(interval.high)})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Watch every recording first, then switch it on, and print how well the forecast held."""
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--alpha", type=float, required=True)
    parser.add_argument("--watch", type=int, default=1000, help="Requests that are watched first.")
    parser.add_argument("--before", help="The model that serves them; the most expensive one.")
    parser.add_argument("--sample", type=float, default=SAMPLE, help="The share called unseen.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    encoder, plan = HashedNgrams(), Plan(seeds=options.seeds, with_baselines=False)
    watching, reports = Watching(options.watch, options.before, options.sample), []
    with progress("runs") as bar:
        for file in options.files:
            recording = read_file(Path(file), encoder)
            task = bar.add_task(recording.name, total=plan.seeds)
            experiment = WatchedExperiment([recording], options.alpha, plan, encoder, watching)
            reports.append(experiment.hold(partial(bar.advance, task)))
    if options.json:
        print(json.dumps([report.as_dict() for report in reports]))
        return
    for report in reports:
        Console().print(table(report))


if __name__ == "__main__":
    main()
