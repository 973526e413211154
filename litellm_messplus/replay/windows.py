"""Satisfaction over the last so many requests: how a run went on the way to its end."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from litellm_messplus.replay.errors import ReplayError
from litellm_messplus.replay.outcome import Outcome, Vector

AFTER_CHANGE = (100, 200, 300, 400, 500)
"""Requests after a model degraded at which the window before them is reported."""


def rolling_points(satisfied: Vector, alpha: float, window: int) -> Vector:
    """Points above alpha over each window of a run; the first ends at request ``window``."""
    points: Vector = 100.0 * (sliding_window_view(satisfied, window).mean(axis=1) - alpha)
    return points


def window_figures(
    outcomes: Sequence[Outcome], alpha: float, window: int, change: int | None
) -> dict[str, Any]:
    """The extra keys of `--window`; ``change`` is the request from which a model was degraded.

    ``d_window``: points above alpha over the last window. ``d_window_worst``: over the worst window
    of a run. ``windows_below_two_points``: share of all windows more than two points below alpha.
    ``d_window_after_degrade``: over the window that ends so many requests after the change. All are
    means over seeds. Raises ReplayError for a window longer than the run.
    """
    requests = len(outcomes[0].satisfied)
    if window > requests:
        raise ReplayError(f"--window: given {window}; allowed: up to the {requests} requests there")
    points = np.array([rolling_points(outcome.satisfied, alpha, window) for outcome in outcomes])
    figures: dict[str, Any] = {
        "window": window,
        "d_window": float(points[:, -1].mean()),
        "d_window_worst": float(points.min(axis=1).mean()),
        "windows_below_two_points": float((points < -2.0).mean()),
    }
    if change is not None:
        means = points.mean(axis=0)
        figures["d_window_after_degrade"] = {
            str(after): float(means[change + after - window])
            for after in AFTER_CHANGE
            if window <= change + after <= requests
        }
    return figures
