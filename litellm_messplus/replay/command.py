"""`messplus replay`: load, run, and show."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from litellm_messplus.prediction.hashed_ngrams import HashedNgrams
from litellm_messplus.replay.experiment import Experiment, Plan
from litellm_messplus.replay.joining import Joining, one_each, streams
from litellm_messplus.replay.plot import draw
from litellm_messplus.replay.progress import progress
from litellm_messplus.replay.sources import load
from litellm_messplus.replay.summary import Report
from litellm_messplus.replay.table import table


def run(
    sources: Sequence[str],
    alphas: Sequence[float],
    plan: Plan,
    *,
    joining: Joining,
    as_json: bool,
    plot: Path | None,
) -> int:
    """Replay every stream, and print a table each, or JSON: an object for one stream, else a list.

    ``alphas`` holds one for all streams, or one for each. Returns the exit status. Raises
    ReplayError for what cannot be used.
    """
    encoder = HashedNgrams()
    recordings = [recording for source in sources for recording in load(source, encoder)]
    joined = streams(recordings, joining)
    experiments = [
        Experiment(stream, alpha, plan, encoder)
        for stream, alpha in zip(joined, one_each(alphas, len(joined)), strict=True)
    ]
    reports = _go(experiments)
    _print(reports, as_json=as_json)
    if plot is not None:
        outcomes = [experiment.outcomes for experiment in experiments]
        draw(plot, list(zip(reports, outcomes, strict=True)))
    return 0


def _go(experiments: Sequence[Experiment]) -> list[Report]:
    reports = []
    with progress() as bar:
        for experiment in experiments:
            task = bar.add_task(experiment.whole.name, total=experiment.runs)
            reports.append(experiment.go(partial(bar.advance, task)))
    return reports


def _print(reports: Sequence[Report], *, as_json: bool) -> None:
    if as_json:
        found = [report.as_dict() for report in reports]
        print(json.dumps(found[0] if len(found) == 1 else found))
        return
    console = Console()
    for report in reports:
        console.print(table(report))
