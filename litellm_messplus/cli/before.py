"""`messplus check`, `replay` and `profile`: the commands to run before a change."""

import os
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from litellm_messplus.cli import options
from litellm_messplus.cli.options import AsJson
from litellm_messplus.replay.plan import Plan
from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.switching.modes import mode_in_words

if TYPE_CHECKING:
    from litellm_messplus.serving.checking import Checked
    from litellm_messplus.settings.serving import WatchSettings

# `messplus check`: would the proxy start with this configuration?


def check(
    config: options.Config = Path("proxy_config.yaml"),
    with_encoder: Annotated[
        bool,
        typer.Option("--encoder/--no-encoder", help="Whether to load the encoder and try it out."),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Check a configuration without starting anything: zoos, modes, candidates, prices, labels.

    Exits with status 1 and one line if the proxy would not start with it.
    """
    options.without_network()
    from litellm_messplus.serving.litellm_fit import check_file, check_litellm

    check_file(config)  # before the seconds that LiteLLM takes to load
    check_litellm()
    from litellm_messplus.encoders.lookup import load_encoder
    from litellm_messplus.serving.checking import checked

    found = checked(config)
    if with_encoder:
        load_encoder(found.encoder)
    options.show(found, *_checked(found), as_json=as_json)


def _checked(found: "Checked") -> Iterator[Any]:
    """Yield the findings: tables and lines."""
    from rich.table import Table

    for zoo in found.zoos:
        alphas = ", ".join(f"{name} {alpha:g}" for name, alpha in zoo.alphas.items())
        table = Table(title=f"{zoo.name}: policy {zoo.policy}, alpha {alphas}")
        table.add_column("candidate")
        for column in ("replicas", f"{zoo.cost_unit}/1M prompt", f"{zoo.cost_unit}/1M answer"):
            table.add_column(column, justify="right")
        for each in zoo.candidates:
            name = f"{each.name} (largest)" if each.is_largest else each.name
            table.add_row(name, str(each.replicas), f"{each.prompt:g}", f"{each.completion:g}")
        yield table
        yield f"mode: {mode_in_words(zoo.mode, zoo.share, zoo.before)}"
        yield f"watch: {_watch(zoo.watch, zoo.cost_unit)}"
        yield f"labels: {', '.join(zoo.labels)}"
        yield from (f"note: {note}" for note in zoo.notes)
    yield f"encoder: {found.encoder}"
    yield from (f"note: {note}" for note in found.notes)
    yield "the proxy would start with this"


def _watch(watch: "WatchSettings", unit: str) -> str:
    budget = watch.budget_per_day
    most = "without a budget" if budget is None else f"for {budget:g} {unit} a day at most"
    return f"of what is served as before, {100.0 * watch.sample:g} % is called unseen, {most}"


# `messplus replay`: an option for each field of its plan, and the options for its output.


def planned(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``plan`` of a command by an option for each field of a `Plan`."""
    *own, _ = signature(command).parameters.values()
    hints = get_type_hints(command, include_extras=True)
    given = [each.replace(annotation=hints[each.name]) for each in own]

    @wraps(command)
    def wrapped(**values: Any) -> None:
        command(**{each.name: values[each.name] for each in own}, plan=_build(Plan, values))

    wrapped.__signature__ = Signature([*given, *_options(Plan)])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {
        each.name: each.annotation for each in signature(wrapped).parameters.values()
    }
    return wrapped


def _options(kind: Any) -> Iterator[Parameter]:
    """Yield a parameter for each field; a nested dataclass is replaced by its own fields."""
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        hint = hints[each.name]
        if is_dataclass(hint):
            yield from _options(hint)
        else:
            yield Parameter(
                each.name, Parameter.POSITIONAL_OR_KEYWORD, default=each.default, annotation=hint
            )


def _build(kind: Any, values: dict[str, Any]) -> Any:
    hints = get_type_hints(kind)
    return kind(
        **{
            each.name: _build(hints[each.name], values)
            if is_dataclass(hints[each.name])
            else values[each.name]
            for each in fields(kind)
        }
    )


@planned
def replay(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Recorded zoos (.csv, .csv.gz, .parquet). Each is replayed on its own, unless "
            "--concatenate or --mix makes one stream of them.",
        ),
    ],
    alpha: Annotated[
        list[float],
        typer.Option(
            help="The share of requests that must be satisfied. For several files, give it once, "
            "or once for each file in their order."
        ),
    ],
    concatenate: Annotated[
        bool,
        typer.Option(
            "--concatenate",
            help="Make one stream: one file after the other, each shuffled within itself.",
        ),
    ] = False,
    mix: Annotated[
        bool, typer.Option("--mix", help="Make one stream: all files shuffled together.")
    ] = False,
    as_json: AsJson = False,
    plot: Annotated[
        Path | None, typer.Option(help="Write a picture of the runs (needs the extra `plot`).")
    ] = None,
    *,
    plan: Plan,
) -> None:
    """Replay recorded requests through the router: at what cost would it have kept alpha?"""
    # Before numpy is imported: its matrices are small here, and more threads only wait.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from litellm_messplus.replay import experiment
    from litellm_messplus.replay.files import Joining

    if mix and (concatenate or plan.in_order):
        raise MessplusError("--mix: given with --concatenate or --in-order; allowed: alone")
    if plan.confidence is not None and plan.policy == "paper":
        raise MessplusError("--confidence: given with --policy paper; allowed: with adaptive")
    if plan.reading.is_on and plan.policy == "paper":
        raise MessplusError("--second-answer: given with --policy paper; allowed: with adaptive")
    if plan.reading.checker is not None and not plan.reading.is_on:
        raise MessplusError("--checker: given alone; allowed: with --second-answer auto")
    if plan.reading.checker_cost > 0.0 and plan.reading.checker is None:
        raise MessplusError("--checker-cost: given alone; allowed: with --checker")
    joining = Joining.MIXED if mix else Joining.CONCATENATED if concatenate else Joining.SEPARATE
    experiment.run(files, alpha, plan, joining=joining, as_json=as_json, plot=plot)


# `messplus profile`: its options.


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
            help="The number of --concurrency that is usual in service; the profile is for it. "
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
    as_json: AsJson = False,
) -> None:
    """Measure what a call to a model costs in joules, next to the GPUs that serve it."""
    from litellm_messplus.energy.command import run
    from litellm_messplus.energy.measure import Grid
    from litellm_messplus.energy.zeus import open_meter

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
    found = open_meter(dotted=meter, gpus=gpus, with_cpu=cpu)
    raise typer.Exit(run(found, grid, url=url, model=model, key=key, out=out, as_json=as_json))
