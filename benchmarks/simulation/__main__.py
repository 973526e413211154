"""``python -m benchmarks.simulation``: its options."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from benchmarks.simulation.experiment import simulate
from benchmarks.simulation.policies import POLICIES
from benchmarks.simulation.show import picture
from benchmarks.simulation.world import ZOOS, Assumed


def agents(
    prices: Annotated[
        str, typer.Option(help="Of the models: `anthropic`, `openai`, or `vllm` (joules).")
    ] = "anthropic",
    seeds: Annotated[
        int, typer.Option(min=1, max=100, help="Times that other sessions are drawn.")
    ] = 4,
    critical_steps: Annotated[
        int,
        typer.Option(min=1, help="Steps of a session that must all succeed; any may be one."),
    ] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the picture.")
    ] = False,
) -> None:
    """Simulate agents' sessions: what would holding them on a model cost, against deciding each
    turn?"""
    if prices not in ZOOS:
        raise typer.BadParameter(
            f"given '{prices}'; one of {', '.join(ZOOS)}", param_hint="--prices"
        )
    columns = (TextColumn("simulating"), BarColumn(), MofNCompleteColumn())
    zoo, assumed = ZOOS[prices], Assumed(critical_steps=critical_steps)
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=seeds * len(POLICIES))
        result = simulate(zoo, assumed, seeds, progress=lambda: bar.advance(task))
    print(json.dumps(result.as_dict()) if as_json else picture(result))


if __name__ == "__main__":
    typer.run(agents)
