"""The `messplus` command and its sub-commands, in the order in which users need them."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from litellm_messplus.cli.before import check, profile, replay
from litellm_messplus.cli.care import import_, prune, verify
from litellm_messplus.cli.every_day import certificate, explain, requests, status, ui
from litellm_messplus.cli.zoo import zoo
from litellm_messplus.runtime.errors import MessplusError

GROUPS: dict[str, tuple[Callable[..., None], ...]] = {
    "Every day": (status, requests, explain, certificate, zoo, ui),
    "Before a change": (check, replay, profile),
    "Care": (verify, prune, import_),
}
MOVED = {
    "up": "`make run` in a checkout, or `python -m examples.up`",
    "demo": "`make demo` in a checkout, or `python -m examples.tiny_zoo.demo`",
    "simulate": "`python -m benchmarks.simulation` in a checkout",
    "datasette-metadata": "`datasette FILE`; docs/sql.md says what each table and column means",
    "encoders": "`messplus replay FILE... --alpha 0.7 --encoder hashed-ngrams --encoder none`",
    "feedback": "`curl PROXY/messplus/feedback -H 'Authorization: Bearer KEY' "
    """-H 'Content-Type: application/json' -d '{"id": "ID", "satisfied": true}'`""",
    "labels": "`messplus import FILE`",
    "teach": "`messplus import --lessons FILE... --zoo ZOO`",
}
"""Commands of earlier versions, and what to type instead."""


class Commands(TyperGroup):
    """The sub-commands; one that has moved is refused with what to type instead."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the sub-command. Raises SystemExit for one that has moved."""
        if cmd_name in MOVED:
            raise SystemExit(f"messplus: no command {cmd_name} any more: type {MOVED[cmd_name]}")
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        """Run the sub-command; an error that a user can fix is one line, with exit status 1."""
        try:
            return super().invoke(ctx)
        except MessplusError as error:
            raise SystemExit(f"messplus: {error}") from error


app = typer.Typer(
    cls=Commands,
    help="Hold a promised share of satisfied requests at the lowest cost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        from litellm_messplus.runtime.loading import version

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


for _group, _commands in GROUPS.items():
    for _command in _commands:
        app.command(_command.__name__.rstrip("_"), rich_help_panel=_group)(_command)
