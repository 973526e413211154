"""`messplus replay`: load, run, and show."""

import json
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from litellm_messplus.prediction.hashed_ngrams import HashedNgrams
from litellm_messplus.replay.errors import ReplayError
from litellm_messplus.replay.experiment import Experiment, Plan
from litellm_messplus.replay.plot import draw
from litellm_messplus.replay.recording import Recording, concatenate
from litellm_messplus.replay.sources import load
from litellm_messplus.replay.summary import Report
from litellm_messplus.replay.table import table


class Joining(StrEnum):
    """What several recordings become."""

    SEPARATE = "separate"
    CONCATENATED = "concatenated"
    MIXED = "mixed"


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
    streams = _streams(recordings, joining)
    experiments = [
        Experiment(stream, alpha, plan, encoder)
        for stream, alpha in zip(streams, _one_each(alphas, len(streams)), strict=True)
    ]
    reports = _go(experiments)
    _print(reports, as_json=as_json)
    if plot is not None:
        outcomes = [experiment.outcomes for experiment in experiments]
        draw(plot, list(zip(reports, outcomes, strict=True)))
    return 0


def _streams(recordings: Sequence[Recording], joining: Joining) -> list[list[Recording]]:
    match joining:
        case Joining.SEPARATE:
            return [[recording] for recording in recordings]
        case Joining.CONCATENATED:
            return [list(recordings)]
        case Joining.MIXED:
            return [[concatenate(recordings)]]


def _one_each(alphas: Sequence[float], streams: int) -> Sequence[float]:
    if len(alphas) == 1:
        return [alphas[0]] * streams
    if len(alphas) != streams:
        raise ReplayError(f"--alpha: given {len(alphas)}; allowed: 1, or one for each of {streams}")
    return alphas


def _go(experiments: Sequence[Experiment]) -> list[Report]:
    reports = []
    with _progress() as progress:
        for experiment in experiments:
            task = progress.add_task(experiment.whole.name, total=experiment.runs)
            reports.append(experiment.go(partial(progress.advance, task)))
    return reports


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _print(reports: Sequence[Report], *, as_json: bool) -> None:
    if as_json:
        found = [report.as_dict() for report in reports]
        print(json.dumps(found[0] if len(found) == 1 else found))
        return
    console = Console()
    for report in reports:
        console.print(table(report))
