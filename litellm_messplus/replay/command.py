"""`messplus replay`: load, run, and show."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from litellm_messplus.prediction.encoder import Encoder
from litellm_messplus.prediction.hashed_ngrams import HashedNgrams
from litellm_messplus.replay.database import is_database, read_database
from litellm_messplus.replay.experiment import Experiment, Plan
from litellm_messplus.replay.files import Joining, one_each, read_file, streams
from litellm_messplus.replay.recording import Recording
from litellm_messplus.replay.show import draw, table
from litellm_messplus.replay.summary import ReplayReport

# How far a command is, for people; apart from its result, which goes to standard output.


def progress() -> Progress:
    """Build a progress bar a stream, counted in runs."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


# Where recordings come from.


def load(source: str, encoder: Encoder) -> list[Recording]:
    """Load the recording in a file, or one for each zoo of a database.

    Raises ReplayError where there is none, and says what is wrong with it.
    """
    if is_database(source):
        return read_database(source, encoder)
    return [read_file(Path(source), encoder)]


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
    experiments = [
        Experiment(stream, alpha, plan, encoder)
        for stream, alpha in _streams(sources, alphas, joining, encoder)
    ]
    reports = _go(experiments)
    _print(reports, as_json=as_json)
    if plot is not None:
        outcomes = [experiment.outcomes for experiment in experiments]
        draw(plot, list(zip(reports, outcomes, strict=True)))
    return 0


def _streams(
    sources: Sequence[str], alphas: Sequence[float], joining: Joining, encoder: Encoder
) -> list[tuple[Sequence[Recording], float]]:
    recordings = [recording for source in sources for recording in load(source, encoder)]
    joined = streams(recordings, joining)
    return list(zip(joined, one_each(alphas, len(joined)), strict=True))


def _go(experiments: Sequence[Experiment]) -> list[ReplayReport]:
    reports = []
    with progress() as bar:
        for experiment in experiments:
            task = bar.add_task(experiment.whole.name, total=experiment.runs)
            reports.append(experiment.go(partial(bar.advance, task)))
    return reports


def _print(reports: Sequence[ReplayReport], *, as_json: bool) -> None:
    if as_json:
        found = [report.as_dict() for report in reports]
        print(json.dumps(found[0] if len(found) == 1 else found))
        return
    console = Console()
    for report in reports:
        console.print(table(report))
