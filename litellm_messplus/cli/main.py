"""The `messplus` command and its sub-commands."""

from pathlib import Path
from typing import Annotated

import typer

from litellm_messplus.cli import keys, labels, simulate
from litellm_messplus.cli.certificate import certificate
from litellm_messplus.cli.history import datasette_metadata, explain, feedback, requests
from litellm_messplus.cli.labels import teach
from litellm_messplus.cli.profile import profile
from litellm_messplus.cli.replay import encoders, replay
from litellm_messplus.cli.status import status
from litellm_messplus.cli.ui import ui
from litellm_messplus.cli.upkeep import check, prune, verify
from litellm_messplus.cli.zoo import zoo

app = typer.Typer(
    help="Hold a promised share of satisfied requests at the lowest cost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        from litellm_messplus.runtime import version

        print(f"litellm-messplus {version()}")
        raise typer.Exit


@app.callback()
def messplus(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Hold a promised share of satisfied requests at the lowest cost."""


@app.command()
def up(
    port: Annotated[int, typer.Option(help="The port of the LiteLLM proxy.")] = 4000,
    zoo_port: Annotated[int, typer.Option(help="The port of the tiny zoo's server.")] = 8001,
    folder: Annotated[Path, typer.Option(help="The folder of the example.")] = Path(
        "examples/tiny_zoo"
    ),
) -> None:
    """Serve the tiny zoo behind a LiteLLM proxy with the plugin, until Ctrl-C."""
    from litellm_messplus.cli.up import run

    raise typer.Exit(run(folder, port=port, zoo_port=zoo_port))


app.command()(certificate)
app.command()(check)
app.command()(replay)
app.command()(encoders)
app.command()(datasette_metadata)
app.command()(explain)
app.command()(feedback)
app.command()(profile)
app.command()(prune)
app.command()(requests)
app.command()(status)
app.command()(teach)
app.command()(ui)
app.command()(verify)
app.command()(zoo)
app.add_typer(labels.app, name="labels")
app.add_typer(simulate.app, name="simulate")


@app.command()
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
        typer.Option(help=f"A key of the proxy. Default: {keys.VARIABLE}, else {keys.FILE}."),
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
    from litellm_messplus.demo.command import run
    from litellm_messplus.demo.session import Labelling

    try:
        labelling = Labelling.parse(labels, seed)
    except ValueError as error:
        raise typer.BadParameter(f"given '{labels}'; {error}", param_hint="--labels") from error
    status = run(
        url=url,
        key=key or keys.find(),
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
