"""``python -m examples.efforts``: tasks through the proxy, each answered at the effort that the
router chooses, and what that costs next to each effort alone."""

import argparse
import json
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from examples.efforts.tasks import generate
from examples.serving import own_proxy
from examples.tiny_zoo.demo.command import play
from examples.tiny_zoo.demo.report import Alone, DemoReport
from examples.tiny_zoo.demo.session import Labelling, SimulatedCrowd
from litellm_messplus.figures.words import figure, percent

FOLDER = Path(__file__).parent
LABELLING = Labelling("all", "efforts", SimulatedCrowd(1.0), labels_explorations=True)
"""Every answer is judged, those that no user saw too."""


def merged(report: DemoReport) -> Alone:
    """Return what the efforts come to as replicas of one model, which LiteLLM draws from evenly."""
    each = report.alone.values()
    return Alone(fmean(one.satisfaction for one in each), fmean(one.cost for one in each))


def table(report: DemoReport) -> Table:
    """Lay out what was routed and what could have been; costs are in dollars for 1,000 tasks."""
    alone = dict(sorted(report.alone.items(), key=lambda item: item[1].cost))
    most = max(one.cost for one in alone.values())
    rows = {
        **{f"always {name.rpartition('/')[2]}": one for name, one in alone.items()},
        "drawn evenly, as replicas": merged(report),
        "cheapest fixed mix, in hindsight": Alone(report.alpha, report.cost_hindsight_mix or 0.0),
        "routed, explorations included": Alone(report.satisfaction, report.cost),
    }
    shown = Table(title=f"{report.requests} tasks, alpha {figure(report.alpha)}")
    for name in ("", "right", "dollars", "of the most"):
        shown.add_column(name, justify="right" if name else "left")
    for name, one in rows.items():
        cost = figure(1_000.0 * one.cost / report.requests)
        shown.add_row(name, percent(one.satisfaction), cost, f"{one.cost / most:.2f}")
    return shown


def main() -> None:
    """Read the command line, start a proxy, send the tasks, and print the figure."""
    parser = argparse.ArgumentParser(description="Route between two efforts of one model.")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--concurrent", type=int, default=4)
    parser.add_argument("--json", action="store_true", help="One JSON object in place of a table.")
    options = parser.parse_args()
    tasks = list(generate(options.requests, options.seed))
    with own_proxy(FOLDER) as (url, key):
        report = play(
            url=url,
            key=key,
            labelling=LABELLING,
            tasks=tasks,
            concurrent=options.concurrent,
            ask_all=True,
        )
    if options.json:
        print(json.dumps(report.as_dict()))
    else:
        Console().print(table(report))


if __name__ == "__main__":
    main()
