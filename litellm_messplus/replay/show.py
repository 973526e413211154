"""A report for people: the policy and every baseline in one table."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.table import Table

from litellm_messplus.replay.recording import Matrix, ReplayError
from litellm_messplus.replay.summary import Outcome, ReplayReport, Score, Vector

TITLES = {
    "paper": "policy paper",
    "educated_guessing": "educated guessing",
}
PREFIXES = {"M": 1e6, "k": 1e3}


def table(report: ReplayReport) -> Table:
    """Lay out one row per policy; spreads are standard deviations over seeds."""
    score = report.score
    factor, unit = scale(report.lp_cost, report.unit)
    shown = Table(
        title=f"{report.file}\n{report.requests} requests, {len(score.costs)} seeds, "
        f"alpha {score.alpha:g}",
        caption=f"served by {_mix(score.model_mix)}; {score.explorations:.0f} explorations"
        + (f"; {score.second_answers:.0f} second answers" if score.second_answers else "")
        + "\n"
        "cost: of every call; mix: the hindsight mix; d: points above alpha;\n"
        "<-0.5, <-2: runs that ended so many points below alpha"
        + "".join(f"\n{note}" for note in report.notes),
        box=SIMPLE,
        pad_edge=False,
        collapse_padding=True,
    )
    shown.add_column("", overflow="fold")
    for column in (f"cost, {unit}", "x mix", "satisfied", "d", "<-0.5", "<-2"):
        shown.add_column(column, justify="right", no_wrap=True)
    shown.add_row(*_scored(f"[bold]policy {report.policy}[/bold]", score, report, factor))
    shown.add_section()
    for name, baseline in report.baselines.items():
        title = TITLES.get(name, name)
        if baseline is None:
            shown.add_row(title, "out of reach")
        else:
            shown.add_row(*_scored(title, baseline, report, factor))
    shown.add_section()
    shown.add_row("[dim]always the same:[/dim]")
    for row in _known_beforehand(report, factor):
        shown.add_row(*row)
    return shown


def scale(cost: float, unit: str) -> tuple[float, str]:
    """Return the factor for costs of about that size, and the unit after it."""
    if unit != "J":
        return 1.0, unit
    return next(
        ((1.0 / size, f"{prefix}J") for prefix, size in PREFIXES.items() if cost >= size),
        (1.0, unit),
    )


def _scored(title: str, score: Score, report: ReplayReport, factor: float) -> list[str]:
    mean = float(score.costs.mean()) * factor
    places = _places(mean)
    return [
        title,
        f"{mean:.{places}f} ± {score.costs.std() * factor:.{places}f}",
        _ratio(float(score.costs.mean()), report),
        f"{score.satisfaction:.1%}",
        f"{score.points.mean():+.2f} ± {score.points.std():.2f}",
        f"{score.below(0.5):.0%}",
        f"{score.below(2.0):.0%}",
    ]


def _known_beforehand(report: ReplayReport, factor: float) -> Iterator[list[str]]:
    alpha = report.score.alpha
    for model, single in report.single_model.items():
        points = 100.0 * (single["satisfaction"] - alpha)
        yield [
            model,
            _cost(single["cost"] * factor),
            _ratio(single["cost"], report),
            f"{single['satisfaction']:.1%}",
            f"{points:+.2f}",
        ]
    yield ["[dim]known beforehand:[/dim]"]
    for title, cost in (("hindsight mix", report.lp_cost), ("oracle", report.oracle_cost)):
        yield [title, _cost(cost * factor), _ratio(cost, report)]


def _cost(value: float) -> str:
    return f"{value:.{_places(value)}f}"


def _places(value: float) -> int:
    """Count the decimals that show three significant digits."""
    return max(2 - math.floor(math.log10(value)), 0) if value > 0.0 else 0


def _ratio(cost: float, report: ReplayReport) -> str:
    return f"{cost / report.lp_cost:.2f}" if report.lp_cost > 0.0 else ""


def _mix(shares: dict[str, float]) -> str:
    """List the models that served at least one request in a hundred, the most used first."""
    used = sorted(((share, model) for model, share in shares.items()), reverse=True)
    return ", ".join(f"{model} {share:.0%}" for share, model in used if share >= 0.01)


# The picture of a replay: the course of the runs, request by request.

SEED = {"color": "tab:blue", "alpha": 0.2, "linewidth": 0.7}
MEAN = {"color": "tab:blue", "linewidth": 2.0, "label": "mean over seeds"}
ALPHA = {"color": "tab:red", "linestyle": "--", "linewidth": 1.2}
SETTLING = 20
"""Requests before a running mean is drawn: the first values are noise and spoil the scale."""


def draw(path: Path, drawn: Sequence[tuple[ReplayReport, Sequence[Outcome]]]) -> None:
    """Write the picture: four panels for each report, one report below the other.

    Raises ReplayError without matplotlib, and if the path cannot be written.
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


def _block(block: Any, report: ReplayReport, outcomes: Sequence[Outcome]) -> None:
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
    """Return the running mean of the values."""
    means: Vector = np.cumsum(values) / np.arange(1, len(values) + 1)
    return means


def call_shares(outcomes: Sequence[Outcome]) -> Matrix:
    """Compute the share of the calls around each request that went to each model: shape (requests,
    models).

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


def _shares(axes: Any, report: ReplayReport, outcomes: Sequence[Outcome]) -> None:
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
    """Choose a colour for each: from a palette of ten, of twenty, or a continuous one."""
    from matplotlib import colormaps

    palette = colormaps["tab10" if models <= 10 else "tab20" if models <= 20 else "turbo"]
    return [palette(place if models <= 20 else place / models) for place in range(models)]


def _queue(outcome: Outcome) -> Vector:
    return np.zeros(len(outcome.served)) if outcome.queue is None else outcome.queue
