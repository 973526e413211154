"""``python -m examples.tiny_zoo.demo``: its options."""

from pathlib import Path
from typing import Annotated

import typer

from examples.tiny_zoo.demo.command import run
from examples.tiny_zoo.demo.session import Labelling
from litellm_messplus.cli import options


def demo(
    requests: Annotated[int, typer.Option(min=1, help="How many requests to send.")] = 300,
    seed: Annotated[
        int, typer.Option(help="The seed of the tasks, and of who gives feedback.")
    ] = 0,
    labels: Annotated[
        str,
        typer.Option(
            help="Where labels come from: `all` (feedback on everything), `checks` (against the "
            "answer in the request's metadata), `judge` or `judge:largest` (a model), "
            "`auto` (a model, where labels are needed), or "
            "`feedback:SHARE` (feedback from that share of users, the unsatisfied three times as "
            "often)."
        ),
    ] = "all",
    concurrent: Annotated[
        int, typer.Option(min=1, max=64, help="How many requests to send at once.")
    ] = 1,
    url: Annotated[
        str, typer.Option(help="The address of the running proxy.")
    ] = "http://127.0.0.1:4000",
    model: Annotated[
        str | None,
        typer.Option(
            help="The model name of the zoo. Default: that of the tiny zoo that fits --labels."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help=f"A key of the proxy. Default: {options.VARIABLE}, else {options.FILE}."),
    ] = None,
    ask_all: Annotated[
        bool,
        typer.Option(
            "--ask-all",
            help="Also ask every model for every task, past the zoo's routing, and show what the "
            "cheapest fixed mix of models that meets alpha, and an oracle, would have cost.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the table.")
    ] = False,
    svg: Annotated[Path | None, typer.Option(help="Also write the table as a picture.")] = None,
) -> None:
    """Send real requests through the running proxy, check every answer, and show the result."""
    try:
        labelling = Labelling.parse(labels, seed)
    except ValueError as error:
        raise typer.BadParameter(f"given '{labels}'; {error}", param_hint="--labels") from error
    status = run(
        url=url,
        key=key or options.find(),
        model=model,
        labelling=labelling,
        requests=requests,
        seed=seed,
        concurrent=concurrent,
        ask_all=ask_all,
        as_json=as_json,
        svg=svg,
    )
    raise typer.Exit(status)


if __name__ == "__main__":
    typer.run(demo)
