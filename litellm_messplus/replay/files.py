"""Recordings in files: CSV, CSV in gzip, Parquet; the same columns in each."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from litellm_messplus.prediction.encoder import Encoder
from litellm_messplus.replay.recording import Matrix, Prompts, Recording, ReplayError, concatenate

SATISFIED = "|satisfied"
COSTS = {"|energy_j": "J", "|cost_usd": "USD"}
"""Endings of a model's cost column, and the unit that each is in."""

Check = Callable[[Matrix], NDArray[np.bool_]]


def read_file(path: Path, encoder: Encoder) -> Recording:
    """Read the recording in a file; a row is a request.

    Raises ReplayError for a file that cannot be read, and for a column that is missing or holds
    what it must not.
    """
    frame = _frame(path)
    models = tuple(
        column.removesuffix(SATISFIED) for column in frame.columns if column.endswith(SATISFIED)
    )
    if len(models) < 2:
        raise ReplayError(
            f"{path}: columns NAME{SATISFIED}: given {len(models)}; allowed: at least 2 models"
        )
    if frame.height == 0:
        raise ReplayError(f"{path}: given no requests; allowed: at least 1 row")
    suffix = _cost_suffix(frame, models, path)
    texts = _texts(frame, path)
    place = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    return Recording(
        name=str(path),
        models=models,
        unit=COSTS[suffix],
        prompts=Prompts.encode(list(place), encoder),
        prompt=np.array([place[text] for text in texts], dtype=np.intp),
        satisfied=_columns(frame, models, SATISFIED, "0 or 1", _is_verdict, path),
        cost=_columns(frame, models, suffix, "a number of at least 0", _is_cost, path),
    )


def _frame(path: Path) -> pl.DataFrame:
    """Read a table; all values of a CSV as text, so that whatever is wrong can be shown as it was
    given."""
    try:
        if path.suffix in (".parquet", ".pq"):
            return pl.read_parquet(path)
        if path.name.endswith((".csv", ".csv.gz")):
            return pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ReplayError(f"{path}: cannot be read ({_first_line(error)})") from error
    raise ReplayError(
        f"{path}: given a file of an unknown kind; allowed: .csv, .csv.gz, .parquet, a SQLite file "
        "ending in .db or .sqlite, or a database URL"
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _texts(frame: pl.DataFrame, path: Path) -> list[str]:
    if "prompt" not in frame.columns:
        raise ReplayError(f"{path}: column 'prompt': given none; allowed: the text of the request")
    texts: list[str] = frame["prompt"].cast(pl.String).fill_null("").to_list()
    return texts


def _cost_suffix(frame: pl.DataFrame, models: tuple[str, ...], path: Path) -> str:
    """Return the suffix of the first unit in which every model has a cost."""
    for suffix in COSTS:
        if all(f"{model}{suffix}" in frame.columns for model in models):
            return suffix
    bare = next(
        (
            model
            for model in models
            if not any(f"{model}{suffix}" in frame.columns for suffix in COSTS)
        ),
        models[0],
    )
    allowed = " or ".join(f"'{bare}{suffix}'" for suffix in COSTS)
    raise ReplayError(f"{path}: cost of '{bare}': given no column in one unit; allowed: {allowed}")


def _columns(
    frame: pl.DataFrame,
    models: tuple[str, ...],
    suffix: str,
    allowed: str,
    is_allowed: Check,
    path: Path,
) -> Matrix:
    columns = []
    for column in (f"{model}{suffix}" for model in models):
        values: Matrix = frame[column].cast(pl.Float64, strict=False).to_numpy()
        wrong = ~is_allowed(values)
        if wrong.any():
            row = int(wrong.argmax())
            raise ReplayError(
                f"{path}: column '{column}', request {row + 1}: given {frame[column][row]!r}; "
                f"allowed: {allowed}"
            )
        columns.append(values)
    return np.column_stack(columns)


def _is_verdict(values: Matrix) -> NDArray[np.bool_]:
    return np.isin(values, (0.0, 1.0))


def _is_cost(values: Matrix) -> NDArray[np.bool_]:
    return np.isfinite(values) & (values >= 0.0)


# From recordings to streams: each on its own, or several as one.


class Joining(StrEnum):
    """The ways to join several recordings."""

    SEPARATE = "separate"
    CONCATENATED = "concatenated"
    MIXED = "mixed"


def streams(recordings: Sequence[Recording], joining: Joining) -> list[list[Recording]]:
    """Return the parts of each stream, which follow one another."""
    match joining:
        case Joining.SEPARATE:
            return [[recording] for recording in recordings]
        case Joining.CONCATENATED:
            return [list(recordings)]
        case Joining.MIXED:
            return [[concatenate(recordings)]]


def one_each(alphas: Sequence[float], count: int) -> Sequence[float]:
    """Return an alpha for each of ``count`` streams, given one for all or one for each.

    Raises ReplayError for any other number of them.
    """
    if len(alphas) == 1:
        return [alphas[0]] * count
    if len(alphas) != count:
        raise ReplayError(f"--alpha: given {len(alphas)}; allowed: 1, or one for each of {count}")
    return alphas
