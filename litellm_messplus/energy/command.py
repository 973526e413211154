"""`messplus profile`: measure, fit, write, and show."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from litellm_messplus.energy.grid import Grid
from litellm_messplus.energy.load import Endpoint
from litellm_messplus.energy.measure import Measured, measure, steps
from litellm_messplus.energy.meter import Meter
from litellm_messplus.energy.profile import MAX_RELATIVE_ERROR
from litellm_messplus.energy.summary import summarise
from litellm_messplus.energy.table import table
from litellm_messplus.errors import ConfigurationError


def run(
    meter: Meter, grid: Grid, *, url: str, model: str, key: str | None, out: Path, as_json: bool
) -> int:
    """Profile the model at the endpoint, write ``out``, and print a table or JSON.

    Returns the exit status: 2 for a profile whose error is so large that the proxy refuses it.
    Raises ConfigurationError for a file that cannot be written, where its folder is not there
    before anything is measured; NotMeasuredError, EndpointError and FitError.
    """
    if out.is_dir() or not out.parent.is_dir():
        raise ConfigurationError("--out", str(out), "a file in a folder that exists")
    with _progress() as bar:
        task = bar.add_task(model, total=steps(grid))
        measured = asyncio.run(
            _measure(meter, grid, url, model, key, advance=lambda: bar.advance(task))
        )
    profile = summarise(measured, grid, meter, model=model, url=url)
    if as_json:
        print(json.dumps(profile.model_dump(mode="json")))
    else:
        Console().print(table(profile))
    try:
        profile.write(out)
    except OSError as error:
        raise ConfigurationError(
            "--out", str(out), f"a file that can be written ({error})"
        ) from error
    return 2 if profile.relative_error > MAX_RELATIVE_ERROR else 0


async def _measure(
    meter: Meter, grid: Grid, url: str, model: str, key: str | None, *, advance: Callable[[], None]
) -> Measured:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    every = httpx.Limits(max_connections=None)  # the grid says how many run at a time
    async with httpx.AsyncClient(headers=headers, limits=every) as client:
        return await measure(meter, Endpoint(client, url, model), grid, advance)


def _progress() -> Progress:
    """Apart from the result, which goes to standard output."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("windows"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
