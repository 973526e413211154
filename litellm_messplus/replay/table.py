"""A report for people: the policy and every baseline in one table."""

import math
from collections.abc import Iterator

from rich.box import SIMPLE
from rich.table import Table

from litellm_messplus.replay.summary import Report, Score

TITLES = {
    "paper": "policy paper",
    "litellm_adaptive_router": "LiteLLM's bandit",
    "educated_guessing": "educated guessing",
}
PREFIXES = {"M": 1e6, "k": 1e3}


def table(report: Report) -> Table:
    """One row a policy; spreads are standard deviations over seeds."""
    score = report.score
    factor, unit = scale(report.lp_cost, report.unit)
    shown = Table(
        title=f"{report.file}\n{report.requests} requests, {len(score.costs)} seeds, "
        f"alpha {score.alpha:g}",
        caption=f"served by {_mix(score.model_mix)}; {score.explorations:.0f} explorations\n"
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
        if baseline is None:
            shown.add_row(TITLES[name], "out of reach")
        else:
            shown.add_row(*_scored(TITLES[name], baseline, report, factor))
    shown.add_section()
    shown.add_row("[dim]always the same:[/dim]")
    for row in _known_beforehand(report, factor):
        shown.add_row(*row)
    return shown


def scale(cost: float, unit: str) -> tuple[float, str]:
    """What to multiply costs of about that size with, and the unit that they are in then."""
    if unit != "J":
        return 1.0, unit
    return next(
        ((1.0 / size, f"{prefix}J") for prefix, size in PREFIXES.items() if cost >= size),
        (1.0, unit),
    )


def _scored(title: str, score: Score, report: Report, factor: float) -> list[str]:
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


def _known_beforehand(report: Report, factor: float) -> Iterator[list[str]]:
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
    """Decimals that show three digits of it."""
    return max(2 - math.floor(math.log10(value)), 0) if value > 0.0 else 0


def _ratio(cost: float, report: Report) -> str:
    return f"{cost / report.lp_cost:.2f}" if report.lp_cost > 0.0 else ""


def _mix(shares: dict[str, float]) -> str:
    """The models that served at least one request in a hundred, the most used first."""
    used = sorted(((share, model) for model, share in shares.items()), reverse=True)
    return ", ".join(f"{model} {share:.0%}" for share, model in used if share >= 0.01)
