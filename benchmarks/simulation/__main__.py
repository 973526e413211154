"""``python -m benchmarks.simulation``: its options."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from benchmarks.simulation.experiment import simulate
from benchmarks.simulation.policies import POLICIES
from benchmarks.simulation.promise import promise
from benchmarks.simulation.show import picture, promise_in_words
from benchmarks.simulation.world import ZOOS, Assumed
from litellm_messplus.settings.serving import Unit


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
    unit: Annotated[
        str,
        typer.Option(
            help="`request` or `conversation`: in place of the policies, whether the router keeps "
            "a promise over those, where each session is judged once."
        ),
    ] = "",
    alpha: Annotated[
        float, typer.Option(min=0.01, max=0.99, help="The share promised; with --unit.")
    ] = 0.7,
    count: Annotated[
        int, typer.Option("--sessions", min=1, help="Sessions of a seed; with --unit.")
    ] = 1_000,
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
    if unit not in ("", *Unit):
        raise typer.BadParameter(f"given '{unit}'; one of {', '.join(Unit)}", param_hint="--unit")
    columns = (TextColumn("simulating"), BarColumn(), MofNCompleteColumn())
    zoo, assumed = ZOOS[prices], Assumed(critical_steps=critical_steps)
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=seeds * (1 if unit else len(POLICIES)))
        if not unit:
            result = simulate(zoo, assumed, seeds, progress=lambda: bar.advance(task))
            figures, words = result.as_dict(), picture(result)
        else:
            kept = promise(
                *(zoo, assumed, seeds, alpha, Unit(unit)),
                count=count,
                progress=lambda: bar.advance(task),
            )
            figures, words = kept.as_dict(), promise_in_words(kept)
    print(json.dumps(figures) if as_json else words)


if __name__ == "__main__":
    typer.run(agents)
