"""`messplus replay`: its options."""

import os
from pathlib import Path
from typing import Annotated

import typer


def replay(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Recorded zoos (.csv, .csv.gz, .parquet), or the plugin's database: a SQLite file "
            "(.db, .sqlite) or its URL. Each is replayed on its own, unless --concatenate or --mix "
            "makes one stream of them.",
        ),
    ],
    alpha: Annotated[
        list[float],
        typer.Option(
            help="The share of requests that must be satisfied. For several files, give it once, "
            "or once for each file in their order."
        ),
    ],
    policy: Annotated[
        str, typer.Option(help="The policy to replay: `adaptive` or `paper`.")
    ] = "adaptive",
    seeds: Annotated[
        int,
        typer.Option(min=1, help="The number of runs; each shuffles and explores by its own seed."),
    ] = 20,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="One JSON object in place of the table; a list for several files."
        ),
    ] = False,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Keep the order of the requests in a file.")
    ] = False,
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
    plot: Annotated[
        Path | None, typer.Option(help="Write a picture of the runs (needs the extra `plot`).")
    ] = None,
    feedback: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, help="The probability that a satisfied user gives feedback."
        ),
    ] = 1.0,
    feedback_bias: Annotated[
        float,
        typer.Option(
            min=0.001,
            help="How many times as often unsatisfied users give feedback. Where that would be "
            "more than always, they always do, and satisfied users that many times less often.",
        ),
    ] = 1.0,
    delay: Annotated[int, typer.Option(min=0, help="How many requests late a label arrives.")] = 0,
    flip: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="The probability that a label says the opposite."),
    ] = 0.0,
    degrade: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL=OTHER@START",
            help="After the share START of a run, half of MODEL's answers, drawn at random, are "
            "only as good as OTHER's.",
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(min=1, help="Also report satisfaction over windows of that many requests."),
    ] = None,
    V: Annotated[
        float,
        typer.Option(
            "--V", help="The weight of cost, per unit, in policy `paper` and in the baseline of it."
        ),
    ] = 1e-4,
    c: Annotated[
        float,
        typer.Option(
            "--c", help="Policy `paper`, and the baseline of it, explore with c / t^(1/4)."
        ),
    ] = 0.1,
    teach: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A recording that the policy is taught before each run, as by `messplus teach`.",
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Of policy `adaptive`: raise the aim so that the certificate says `kept` at that "
            "confidence, and report in how many runs it does."
        ),
    ] = None,
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Whether to run the baselines too.")
    ] = True,
) -> None:
    """Replay recorded requests through the router: at what cost would it have kept alpha?"""
    # Before numpy is imported: its matrices are small here, and more threads only wait in turn.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from litellm_messplus.errors import MessplusError
    from litellm_messplus.replay.command import run
    from litellm_messplus.replay.experiment import Plan
    from litellm_messplus.replay.files import Joining
    from litellm_messplus.replay.stress import Stress

    if mix and (concatenate or in_order):
        raise typer.BadParameter("given with --concatenate or --in-order; allowed: --mix alone")
    if confidence is not None and policy == "paper":
        raise typer.BadParameter(
            "given with --policy paper; allowed: with adaptive", param_hint="--confidence"
        )
    joining = Joining.MIXED if mix else Joining.CONCATENATED if concatenate else Joining.SEPARATE
    try:
        plan = Plan(
            policy=policy,
            V=V,
            c=c,
            seeds=seeds,
            stress=Stress(feedback, feedback_bias, delay, flip),
            degrade=degrade,
            in_order=in_order,
            window=window,
            with_baselines=baselines,
            confidence=confidence,
            lessons=teach,
        )
        status = run(files, alpha, plan, joining=joining, as_json=as_json, plot=plot)
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    raise typer.Exit(status)


# `messplus encoders`: its options.


def encoders(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Recorded zoos, as `messplus replay` reads them. From a database, the requests "
            "whose text was stored are read.",
        ),
    ],
    alpha: Annotated[
        list[float],
        typer.Option(
            help="The share of requests that must be satisfied in the replay. For several files, "
            "give it once, or once for each file in their order."
        ),
    ],
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A value of the setting `encoder`; repeat it for each encoder. Default: "
            "hashed-ngrams, and none, which does not read the prompt.",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="The number of runs, each in another order.")
    ] = 5,
    mix: Annotated[
        bool, typer.Option("--mix", help="Make one stream: all files shuffled together.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="One JSON object in place of the table; a list for several files."
        ),
    ] = False,
) -> None:
    """Compare encoders on recorded requests: which of them saves cost by reading the prompt?"""
    # Before numpy is imported: its matrices are small here, and more threads only wait in turn.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from litellm_messplus.errors import MessplusError
    from litellm_messplus.replay.encoders import run
    from litellm_messplus.replay.files import Joining

    try:
        status = run(
            files,
            alpha,
            list(dict.fromkeys(encoder or ("hashed-ngrams", "none"))),
            seeds=seeds,
            joining=Joining.MIXED if mix else Joining.SEPARATE,
            as_json=as_json,
        )
    except MessplusError as error:
        raise SystemExit(f"messplus: {error}") from error
    raise typer.Exit(status)
