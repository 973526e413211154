"""`messplus check`: is this configuration one that the proxy would start with?"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from litellm_messplus.proxy.checking import Checked


def check(
    config: Annotated[
        Path, typer.Option(help="Of the proxy, as `litellm --config` takes it.")
    ] = Path("proxy_config.yaml"),
    with_encoder: Annotated[
        bool, typer.Option("--encoder/--no-encoder", help="Whether to load the encoder and try it.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object in place of the tables.")
    ] = False,
) -> None:
    """Check a configuration without starting anything: zoos, candidates, prices, labels.

    Exits with status 1 and one line where the proxy would not start with it.
    """
    # LiteLLM would ask the network for prices when it is imported; its package has them too.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import json

    from rich.console import Console

    from litellm_messplus.encoders.lookup import load_encoder
    from litellm_messplus.errors import MessplusError
    from litellm_messplus.proxy.checking import checked
    from litellm_messplus.settings.file import read_config

    try:
        found = checked(read_config(config))
        if with_encoder:
            load_encoder(found.encoder)
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    if as_json:
        print(json.dumps(found.as_dict()))
    else:
        _print(found, Console(highlight=False))


def _print(found: "Checked", console: object) -> None:
    from rich.console import Console
    from rich.table import Table

    assert isinstance(console, Console)
    for zoo in found.zoos:
        alphas = ", ".join(f"{name} {alpha:g}" for name, alpha in zoo.alphas.items())
        table = Table(title=f"{zoo.name}: policy {zoo.policy}, alpha {alphas}")
        table.add_column("candidate")
        for column in ("replicas", f"{zoo.cost_unit}/1M prompt", f"{zoo.cost_unit}/1M answer"):
            table.add_column(column, justify="right")
        for each in zoo.candidates:
            name = f"{each.name} (largest)" if each.is_largest else each.name
            table.add_row(name, str(each.replicas), f"{each.prompt:g}", f"{each.completion:g}")
        console.print(table)
        console.print(f"labels: {', '.join(zoo.labels)}")
        for note in zoo.notes:
            console.print(f"note: {note}")
    console.print(f"encoder: {found.encoder}")
    for note in found.notes:
        console.print(f"note: {note}")
    console.print("the proxy would start with this")
