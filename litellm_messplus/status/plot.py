"""The picture of the calibration: a reliability diagram for each candidate."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from litellm_messplus.errors import MessplusError
from litellm_messplus.status.calibration import BINS, CandidateCalibration, ZooCalibration

COLUMNS = 4
"""Diagrams side by side."""
BINNED = {"color": "tab:blue", "fmt": "o-", "linewidth": 1.5, "markersize": 4.0, "capsize": 2.0}
PERFECT = {"color": "tab:red", "linestyle": "--", "linewidth": 1.2}
COUNTS = {"color": "tab:blue", "alpha": 0.4, "align": "edge", "width": 1.0 / BINS}


class PlotError(MessplusError):
    """No picture can be drawn; the message says why."""


def draw(path: Path, calibrations: Sequence[ZooCalibration]) -> None:
    """Write the picture: a block for each zoo, in it a diagram for each candidate.

    Raises PlotError without matplotlib, where no call was judged yet, and where the path cannot be
    written.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotError(
            "--plot: given, but matplotlib is not installed: pip install 'litellm-messplus[plot]'"
        ) from error
    if not calibrations:
        raise PlotError("--plot: given, but no call was judged yet, so there is nothing to draw")
    rows = [-(-len(each.candidates) // COLUMNS) for each in calibrations]
    columns = max(min(len(each.candidates), COLUMNS) for each in calibrations)
    figure = Figure(figsize=(max(3.6 * columns, 5.0), 4.6 * sum(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    blocks = figure.subfigures(len(calibrations), 1, squeeze=False, height_ratios=rows)[:, 0]
    for block, calibration in zip(blocks, calibrations, strict=True):
        _block(block, calibration, columns)
    try:
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise PlotError(f"--plot: given '{path}'; allowed: a picture file ({error})") from error


def _block(block: Any, calibration: ZooCalibration, columns: int) -> None:
    found = calibration.reading
    block.suptitle(
        f"{calibration.zoo}: {found.calls} judged calls; reading the prompt pays: "
        f"{found.reading_pays} ({found.gain:+.4f} nats)"
    )
    rows = -(-len(calibration.candidates) // columns)
    panels = block.subplots(
        2 * rows, columns, squeeze=False, sharex=True, height_ratios=[3.0, 1.0] * rows
    )
    for place in range(rows * columns):
        row, column = divmod(place, columns)
        diagram, counts = panels[2 * row, column], panels[2 * row + 1, column]
        if place < len(calibration.candidates):
            _diagram(diagram, calibration.candidates[place])
            _counts(counts, calibration.candidates[place])
        else:
            diagram.remove()
            counts.remove()


def _diagram(axes: Any, candidate: CandidateCalibration) -> None:
    bins = candidate.bins
    satisfied = [each.satisfied for each in bins]
    below = [each.satisfied - each.satisfied_low for each in bins]
    above = [each.satisfied_high - each.satisfied for each in bins]
    axes.plot([0.0, 1.0], [0.0, 1.0], label="as predicted", **PERFECT)
    axes.errorbar(
        [each.predicted for each in bins], satisfied, [below, above], label="judged", **BINNED
    )
    axes.set_title(candidate.candidate, fontsize="medium")
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.02)
    axes.set_ylabel("satisfied")
    axes.legend(loc="upper left", fontsize="small")


def _counts(axes: Any, candidate: CandidateCalibration) -> None:
    axes.bar([each.low for each in candidate.bins], [b.calls for b in candidate.bins], **COUNTS)
    for each in candidate.bins:
        middle = (each.low + each.high) / 2.0
        axes.annotate(f"{each.calls}", (middle, each.calls), ha="center", fontsize="x-small")
    axes.margins(y=0.3)
    axes.set_ylabel("calls")
    axes.set_xlabel("predicted")
    axes.tick_params(labelbottom=True)
