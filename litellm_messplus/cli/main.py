"""The `messplus` command and its sub-commands, in the order in which users need them."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from litellm_messplus.cli.before import check, profile, replay
from litellm_messplus.cli.care import brain, prune, verify
from litellm_messplus.cli.every_day import certificate, requests, status
from litellm_messplus.cli.zoo import zoo
from litellm_messplus.runtime.errors import MessplusError

GROUPS: dict[str, tuple[Callable[..., None], ...]] = {
    "Every day": (status, requests, certificate, zoo),
    "Before a change": (check, replay, profile),
    "Care": (verify, prune, brain),
}


class Commands(TyperGroup):
    """The sub-commands."""

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
        app.command(_command.__name__, rich_help_panel=_group)(_command)
