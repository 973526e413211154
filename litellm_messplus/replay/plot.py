"""The picture of a replay: how the runs went, request by request."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from litellm_messplus.replay.errors import ReplayError
from litellm_messplus.replay.outcome import Outcome, Vector
from litellm_messplus.replay.recording import Matrix
from litellm_messplus.replay.summary import Report

SEED = {"color": "tab:blue", "alpha": 0.2, "linewidth": 0.7}
MEAN = {"color": "tab:blue", "linewidth": 2.0, "label": "mean over seeds"}
ALPHA = {"color": "tab:red", "linestyle": "--", "linewidth": 1.2}
SETTLING = 20
"""Requests before a running mean is drawn: until then it says nothing and spoils the scale."""


def draw(path: Path, drawn: Sequence[tuple[Report, Sequence[Outcome]]]) -> None:
    """Write the picture: four panels for each report, one report below the other.

    Raises ReplayError without matplotlib, and where the path cannot be written.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ReplayError(
            "--plot: given, but matplotlib is not installed: pip install 'litellm-messplus[plot]'"
        ) from error
    figure = Figure(figsize=(12.0, 7.5 * len(drawn)), layout="constrained")
    FigureCanvasAgg(figure)
    blocks = figure.subfigures(len(drawn), 1, squeeze=False)[:, 0]
    for block, (report, outcomes) in zip(blocks, drawn, strict=True):
        _block(block, report, outcomes)
    try:
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise ReplayError(f"--plot: given '{path}'; allowed: a picture file ({error})") from error


def _block(block: Any, report: Report, outcomes: Sequence[Outcome]) -> None:
    alpha = report.score.alpha
    block.suptitle(f"{Path(report.file).name}: policy {report.policy}, alpha {alpha:g}")
    (satisfaction, queue), (cost, models) = block.subplots(2, 2)
    _lines(satisfaction, "running satisfaction", [running(one.satisfied) for one in outcomes])
    satisfaction.axhline(alpha, label=f"alpha = {alpha:g}", **ALPHA)
    satisfaction.legend(loc="best")
    _lines(queue, "virtual queue (requests)", [_queue(one) for one in outcomes], start=0)
    queue.axhline(0.0, color="black", linewidth=0.6)
    _lines(
        cost,
        f"running cost per request ({report.unit})",
        [running(one.cost) for one in outcomes],
    )
    cost.axhline(report.lp_cost / report.requests, label="hindsight mix", **ALPHA)
    cost.legend(loc="best")
    _shares(models, report, outcomes)


def running(values: Vector) -> Vector:
    """The mean of all values so far, at each of them."""
    means: Vector = np.cumsum(values) / np.arange(1, len(values) + 1)
    return means


def call_shares(outcomes: Sequence[Outcome]) -> Matrix:
    """Which share of the calls around each request went to which model: shape (requests, models).

    Explorations count; over all seeds, and over a window of a twentieth of the run.
    """
    calls = np.mean([outcome.calls for outcome in outcomes], axis=0)
    window = max(len(calls) // 20, 1)
    totals = np.vstack([np.zeros(calls.shape[1]), np.cumsum(calls, axis=0)])
    ends = np.arange(1, len(calls) + 1)
    around = totals[ends] - totals[np.maximum(ends - window, 0)]
    shares: Matrix = around / around.sum(axis=1, keepdims=True)
    return shares


def _lines(axes: Any, title: str, runs: Sequence[Vector], start: int = SETTLING) -> None:
    start = min(start, len(runs[0]) - 1)
    request = np.arange(start + 1, len(runs[0]) + 1)
    for run in runs:
        axes.plot(request, run[start:], **SEED)
    axes.plot(request, np.mean(runs, axis=0)[start:], **MEAN)
    _label(axes, title)


def _shares(axes: Any, report: Report, outcomes: Sequence[Outcome]) -> None:
    shares = call_shares(outcomes)
    models = list(report.score.model_mix)
    axes.set_prop_cycle(color=_colours(len(models)))
    axes.stackplot(np.arange(1, len(shares) + 1), shares.T, labels=models)
    axes.set_ylim(0.0, 1.0)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small", reverse=True)
    _label(axes, "calls per model (share, moving)")


def _label(axes: Any, title: str) -> None:
    axes.set_title(title)
    axes.set_xlabel("request")
    axes.margins(x=0.0)


def _colours(models: int) -> list[Any]:
    """One each: a palette of ten, of twenty, or a continuous one."""
    from matplotlib import colormaps

    palette = colormaps["tab10" if models <= 10 else "tab20" if models <= 20 else "turbo"]
    return [palette(place if models <= 20 else place / models) for place in range(models)]


def _queue(outcome: Outcome) -> Vector:
    return np.zeros(len(outcome.served)) if outcome.queue is None else outcome.queue
