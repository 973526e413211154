"""`messplus encoders`: load, compare, and show."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.encoders.none import NoEncoder
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.prediction.encoder import Encoder
from litellm_messplus.replay.encoders import Compared, Comparison, compare
from litellm_messplus.replay.errors import ReplayError
from litellm_messplus.replay.joining import Joining, one_each, streams
from litellm_messplus.replay.progress import progress
from litellm_messplus.replay.sources import load
from litellm_messplus.replay.table import scale


def run(
    sources: Sequence[str],
    alphas: Sequence[float],
    settings: Sequence[str],
    *,
    seeds: int,
    joining: Joining,
    as_json: bool,
) -> int:
    """Compare the encoders of those settings on every stream, and print a table each, or JSON: an
    object for one stream, else a list.

    ``alphas`` holds one for all streams, or one for each. Returns the exit status. Raises
    ReplayError for what cannot be used.
    """
    encoders = {setting: _encoder(setting) for setting in settings}
    recordings = [found.known() for source in sources for found in load(source, NoEncoder())]
    joined = [parts[0] for parts in streams(recordings, joining)]
    comparisons = []
    with progress() as bar:
        for recording, alpha in zip(joined, one_each(alphas, len(joined)), strict=True):
            task = bar.add_task(recording.name, total=4 * seeds * len(encoders))
            advance = partial(bar.advance, task)
            comparisons.append(compare(recording, encoders, alpha, seeds, advance))
    _print(comparisons, as_json=as_json)
    return 0


def _encoder(setting: str) -> Encoder:
    try:
        return load_encoder(setting)
    except ConfigurationError as error:
        raise ReplayError(f"--encoder: given '{setting}'; allowed: {error.allowed}") from error


def _print(comparisons: Sequence[Comparison], *, as_json: bool) -> None:
    if as_json:
        found: list[dict[str, Any]] = [asdict(each) for each in comparisons]
        print(json.dumps(found[0] if len(found) == 1 else found))
        return
    console = Console()
    for each in comparisons:
        console.print(_table(each))


def _table(comparison: Comparison) -> Table:
    """Two rows an encoder: beside the surface of the prompts, and alone."""
    rows = {
        **comparison.encoders,
        **{f"{name}, alone": found for name, found in comparison.alone.items()},
    }
    factor, unit = scale(max(each.cost_total for each in rows.values()), comparison.unit)
    shown = Table(
        title=f"{comparison.file}\n{comparison.requests} requests, {comparison.seeds} seeds, "
        f"alpha {comparison.alpha:g}",
        caption="log-loss in nats, of the predictions and of the running mean;\n"
        "cost: of every call of a replay; d: points above alpha;\n"
        "alone: without the surface of the prompts, which the router reads beside every encoder",
        box=SIMPLE,
        pad_edge=False,
        collapse_padding=True,
    )
    shown.add_column("encoder", overflow="fold")
    for column in (
        *("log-loss", "of mean", "AUC", f"cost, {unit}", "d", "ms/prompt", "ms/update"),
    ):
        shown.add_column(column, justify="right", no_wrap=True)
    for name, found in rows.items():
        shown.add_row(name, *_cells(found, factor))
    return shown


def _cells(found: Compared, factor: float) -> Iterator[str]:
    yield f"{found.log_loss:.4f}"
    yield f"{found.log_loss_mean:.4f}"
    yield "unknown" if found.auc is None else f"{found.auc:.3f}"
    yield f"{found.cost_total * factor:.4g}"
    yield f"{found.d_points:+.2f}"
    yield f"{found.ms_per_prompt:.3f}"
    yield f"{found.ms_per_update:.3f}"
