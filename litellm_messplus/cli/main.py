"""The `messplus` command and its sub-commands."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from litellm_messplus.cli import labels
from litellm_messplus.cli.certificate import certificate
from litellm_messplus.cli.history import explain, feedback, requests
from litellm_messplus.cli.labels import teach
from litellm_messplus.cli.profile import profile
from litellm_messplus.cli.replay import encoders, replay
from litellm_messplus.cli.status import status
from litellm_messplus.cli.ui import ui
from litellm_messplus.cli.upkeep import check, prune, verify
from litellm_messplus.cli.zoo import zoo

MOVED = {
    "up": "`make run` in a checkout, or `python -m examples.up`",
    "demo": "`make demo` in a checkout, or `python -m examples.tiny_zoo.demo`",
    "simulate": "`python -m benchmarks.simulation` in a checkout",
    "datasette-metadata": "`datasette FILE`; docs/sql.md says what each table and column means",
}
"""Commands of earlier versions, and what to type instead."""


class Commands(TyperGroup):
    """The sub-commands; one that has moved is refused with what to type instead."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the sub-command. Raises SystemExit for one that has moved."""
        if cmd_name in MOVED:
            raise SystemExit(f"messplus: no command {cmd_name} any more: type {MOVED[cmd_name]}")
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    cls=Commands,
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


app.command()(certificate)
app.command()(check)
app.command()(replay)
app.command()(encoders)
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
