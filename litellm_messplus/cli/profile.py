"""`messplus profile`: its options."""

from pathlib import Path
from typing import Annotated

import typer


def _numbers(option: str, given: str) -> tuple[int, ...]:
    try:
        return tuple(int(each) for each in given.split(","))
    except ValueError as error:
        raise typer.BadParameter(
            f"given {given!r}; allowed: numbers between commas, such as 1,4,16", param_hint=option
        ) from error


def profile(
    url: Annotated[str, typer.Option(help="The model's endpoint, such as http://gpu-1:8001/v1.")],
    model: Annotated[str, typer.Option(help="The name of the model at that endpoint.")],
    out: Annotated[Path, typer.Option(help="The file to write, such as llama-1b.energy.yaml.")],
    gpu: Annotated[
        str | None,
        typer.Option(
            metavar="0,1",
            help="The GPUs that serve the model, by index. Default: all GPUs of the host.",
        ),
    ] = None,
    cpu: Annotated[
        bool, typer.Option("--cpu", help="Count all processors and memory of the host too (RAPL).")
    ] = False,
    zeusd: Annotated[
        str | None,
        typer.Option(
            metavar="HOST[:PORT]",
            help="Measure on another host, through its zeusd daemon.",
        ),
    ] = None,
    meter: Annotated[
        str | None,
        typer.Option(metavar="package.module:attribute", help="Measure with a meter of your own."),
    ] = None,
    concurrency: Annotated[
        str,
        typer.Option(
            metavar="1,4,16", help="How many requests run at once; each number is fitted by itself."
        ),
    ] = "1,4,16",
    serving_concurrency: Annotated[
        int | None,
        typer.Option(
            help="The number of --concurrency that is usual in service, and so the profile's. "
            "Default: the middle one."
        ),
    ] = None,
    prompt_tokens: Annotated[
        str, typer.Option(metavar="64,256,1024", help="Lengths of the prompts, approximately.")
    ] = "64,256,1024",
    completion_tokens: Annotated[
        str, typer.Option(metavar="16,64,256", help="Lengths of the completions.")
    ] = "16,64,256",
    repeats: Annotated[
        int, typer.Option(help="Measurements of each combination of the three.")
    ] = 2,
    seconds: Annotated[float, typer.Option(help="The least duration of a measurement.")] = 5.0,
    idle_windows: Annotated[
        int, typer.Option(help="Measurements without requests, made first.")
    ] = 5,
    key: Annotated[str | None, typer.Option(help="A key of the endpoint, if it needs one.")] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the profile as a JSON object in place of the table."),
    ] = False,
) -> None:
    """Measure what a call to a model costs in joules, next to the GPUs that serve it."""
    from litellm_messplus.energy.command import run
    from litellm_messplus.energy.measure import Grid
    from litellm_messplus.energy.zeus import open_meter
    from litellm_messplus.errors import MessplusError

    try:
        grid = Grid(
            prompt_tokens=_numbers("--prompt-tokens", prompt_tokens),
            completion_tokens=_numbers("--completion-tokens", completion_tokens),
            concurrency=_numbers("--concurrency", concurrency),
            serving_concurrency=serving_concurrency,
            repeats=repeats,
            seconds=seconds,
            idle_windows=idle_windows,
        )
        gpus = None if gpu is None else _numbers("--gpu", gpu)
        found = open_meter(dotted=meter, zeusd=zeusd, gpus=gpus, with_cpu=cpu)
        status = run(found, grid, url=url, model=model, key=key, out=out, as_json=as_json)
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    raise typer.Exit(status)
