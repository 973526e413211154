"""Recordings in files: CSV, CSV in gzip, Parquet; the same columns in each."""

import csv
import gzip
import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.answer import ANSWER_NUMBERS, Answer, read_answer
from litellm_messplus.core.encoder import Encoder
from litellm_messplus.replay.recording import (
    AnswerRows,
    Matrix,
    Prompts,
    Recording,
    ReplayError,
    concatenate,
)

SATISFIED, ANSWER, SCORE = "|satisfied", "|answer", "|score"
COSTS = {"|energy_j": "J", "|cost_usd": "USD"}
"""Suffixes of a model's cost column, and the unit of each."""

LONGEST_FIELD = 2**31 - 1
"""Most characters of a prompt in a CSV; the module `csv` stops at 131,072 by default."""

NO_POLARS = "Parquet needs polars, which is not installed: pip install 'litellm-messplus[parquet]'"

Check = Callable[[Matrix], NDArray[np.bool_]]
Columns = Mapping[str, Sequence[Any]]
"""A table: the values of each column, all of the same length; in a CSV all are text."""


def read_file(path: Path, encoder: Encoder, *, reads: bool = False) -> Recording:
    """Read the recording in a file; a row is a request, or a turn of a conversation. If it
    ``reads``, the answers are read too, if there are any.

    Raises ReplayError for a file that cannot be read, and for a column that is missing or has an
    invalid value.
    """
    table = _table(path)
    models = tuple(name.removesuffix(SATISFIED) for name in table if name.endswith(SATISFIED))
    if len(models) < 2:
        raise ReplayError(
            f"{path}: columns NAME{SATISFIED}: given {len(models)}; allowed: at least 2 models"
        )
    if not next(iter(table.values())):
        raise ReplayError(f"{path}: given no requests; allowed: at least 1 row")
    suffix = _cost_suffix(table, models, path)
    notes: tuple[str, ...] = ()
    if CONVERSATION in table:
        notes = (_note(table),)
        table = _by_conversation(table, models, SATISFIED, suffix, path)
    texts = _texts(table, path)
    place = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    return Recording(
        name=str(path),
        models=models,
        unit=COSTS[suffix],
        prompts=Prompts.encode(list(place), encoder),
        prompt=np.array([place[text] for text in texts], dtype=np.intp),
        satisfied=_columns(table, models, SATISFIED, "0 or 1", _is_verdict, path),
        cost=_columns(table, models, suffix, "a number of at least 0", _is_cost, path),
        notes=notes,
        answers=_answers(table, models, path) if reads else None,
    )


def _answers(table: Columns, models: tuple[str, ...], path: Path) -> AnswerRows | None:
    """Read the surfaces of the answers, and the scores of one's own, shape (requests, models,
    numbers); None for conversations, and without columns of them."""
    found = np.zeros((len(table["prompt"]), len(models), len(ANSWER_NUMBERS)), np.float32)
    suffixes = [each for each in (ANSWER, SCORE) if f"{models[0]}{each}" in table]
    if not suffixes or CONVERSATION in table:
        return None
    for place, model in enumerate(models):
        texts = table[f"{model}{ANSWER}"] if ANSWER in suffixes else [""] * len(found)
        scores = _scores(table, f"{model}{SCORE}", path) if SCORE in suffixes else None
        for row, text in enumerate(texts):
            score = math.nan if scores is None else scores[row]
            found[row, place] = read_answer(Answer(str(text or ""), score=score))
    return found


def _scores(table: Columns, column: str, path: Path) -> list[float]:
    scores = [_number(value) for value in table[column]]
    for row, score in enumerate(scores):
        if not math.isfinite(score):
            raise ReplayError(
                f"{path}: column '{column}', request {row + 1}: given {table[column][row]!r}; "
                "allowed: a finite number"
            )
    return scores


def _table(path: Path) -> Columns:
    """Read all values of a CSV as text, so that an error can show the value as given."""
    try:
        if path.suffix in (".parquet", ".pq"):
            return _parquet(path)
        if path.name.endswith((".csv", ".csv.gz")):
            return _csv(path)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise ReplayError(f"{path}: cannot be read ({error or type(error).__name__})") from error
    raise ReplayError(f"{path}: given a file of an unknown kind; allowed: .csv, .csv.gz, .parquet")


def _parquet(path: Path) -> Columns:
    # polars takes 180 MB, and only replays of such files need it. Others are as large, or need
    # pandas.
    try:
        import polars as pl
    except ImportError as error:
        raise ReplayError(f"{path}: cannot be read ({NO_POLARS})") from error
    try:
        found: Columns = pl.read_parquet(path).to_dict(as_series=False)
    except pl.exceptions.PolarsError as error:
        raise OSError((str(error).splitlines() or [type(error).__name__])[0]) from error
    return found


def _csv(path: Path) -> Columns:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        before = csv.field_size_limit(LONGEST_FIELD)
        try:
            rows = [row for row in csv.reader(file, strict=True) if row]
        finally:
            csv.field_size_limit(before)
    names, *found = rows or [[]]
    if len(set(names)) < len(names):
        raise csv.Error("two columns of one name")
    for number, row in enumerate(found, start=1):
        if len(row) != len(names):
            raise csv.Error(f"request {number} has {len(row)} values in {len(names)} columns")
    return {name: [row[place] for row in found] for place, name in enumerate(names)}


def _texts(table: Columns, path: Path) -> list[str]:
    if "prompt" not in table:
        raise ReplayError(f"{path}: column 'prompt': given none; allowed: the text of the request")
    return ["" if text is None else str(text) for text in table["prompt"]]


def _cost_suffix(table: Columns, models: tuple[str, ...], path: Path) -> str:
    """Return the suffix of the first unit in which every model has a cost."""
    for suffix in COSTS:
        if all(f"{model}{suffix}" in table for model in models):
            return suffix
    bare = next(
        (model for model in models if not any(f"{model}{suffix}" in table for suffix in COSTS)),
        models[0],
    )
    allowed = " or ".join(f"'{bare}{suffix}'" for suffix in COSTS)
    raise ReplayError(f"{path}: cost of '{bare}': given no column in one unit; allowed: {allowed}")


def _columns(
    table: Columns,
    models: tuple[str, ...],
    suffix: str,
    allowed: str,
    is_allowed: Check,
    path: Path,
) -> Matrix:
    columns = []
    for column in (f"{model}{suffix}" for model in models):
        values: Matrix = np.array([_number(value) for value in table[column]], dtype=np.float64)
        wrong = ~is_allowed(values)
        if wrong.any():
            row = int(wrong.argmax())
            raise ReplayError(
                f"{path}: column '{column}', request {row + 1}: given {table[column][row]!r}; "
                f"allowed: {allowed}"
            )
        columns.append(values)
    return np.column_stack(columns)


def _number(value: Any) -> float:
    """Read a number; NaN for anything else, which no column allows."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _is_verdict(values: Matrix) -> NDArray[np.bool_]:
    return np.isin(values, (0.0, 1.0))


def _is_cost(values: Matrix) -> NDArray[np.bool_]:
    return np.isfinite(values) & (values >= 0.0)


# Recordings of conversations: a row is a turn, and a conversation becomes one request. It is
# decided at its first turn and held on that model, as recorded: each model's turns followed on its
# own answers. The effect of a switch is unknown.

CONVERSATION, TURN = "conversation", "turn"
EMPTY = (None, "")


def _by_conversation(
    table: Columns, models: tuple[str, ...], verdict: str, cost: str, path: Path
) -> Columns:
    """Return a row per conversation, in the order of their first turns: its first prompt, the
    total cost of each model's turns, and the verdict at each model's last turn.

    ``verdict`` and ``cost`` are the suffixes of the models' columns. Raises ReplayError for a turn
    number or a cost that is not a number, and if a model goes on after it had ended.
    """
    conversations = _ordered(table, path)
    found: dict[str, list[Any]] = {
        "prompt": [table["prompt"][rows[0]] for rows in conversations],
    }
    for model in models:
        spent = [_costs(table, f"{model}{cost}", rows, path) for rows in conversations]
        verdicts = table[f"{model}{verdict}"]
        found[f"{model}{cost}"] = [math.fsum(each) if each else None for each in spent]
        found[f"{model}{verdict}"] = [
            verdicts[rows[len(each) - 1]] if each else None
            for rows, each in zip(conversations, spent, strict=True)
        ]
    return found


def _note(table: Columns) -> str:
    """Return a note for readers of the figures."""
    turns, conversations = len(table[CONVERSATION]), len(set(table[CONVERSATION]))
    return (
        f"{conversations} conversations of {turns / conversations:.1f} turns: each counts "
        "as one request, is decided at its first turn and held on that model; no switch is replayed"
    )


def _ordered(table: Columns, path: Path) -> list[list[int]]:
    """Return the rows of each conversation: conversations as they begin, their turns by number if
    there is one, else in file order."""
    if "prompt" not in table:
        raise ReplayError(f"{path}: column 'prompt': given none; allowed: the text of each turn")
    rows: dict[Any, list[int]] = {}
    for row, conversation in enumerate(table[CONVERSATION]):
        rows.setdefault(conversation, []).append(row)
    if TURN in table:
        turns = [_turn(value, row, path) for row, value in enumerate(table[TURN])]
        return [sorted(each, key=turns.__getitem__) for each in rows.values()]
    return list(rows.values())


def _turn(given: object, row: int, path: Path) -> float:
    number = _number(given)
    if math.isnan(number):
        raise ReplayError(
            f"{path}: column '{TURN}', row {row + 1}: given {given!r}; allowed: a number"
        )
    return number


def _costs(table: Columns, column: str, rows: list[int], path: Path) -> list[float]:
    """Return the cost of each turn of the model, up to its last one: later turns are empty."""
    given = [table[column][row] for row in rows]
    spent: list[float] = []
    for turn, value in enumerate(given):
        if value in EMPTY:
            continue
        cost = _number(value)
        if not 0.0 <= cost < math.inf:
            reason = "allowed: a number of at least 0, or empty"
        elif turn > len(spent):
            reason = "after an empty turn; allowed: empty from where the model had ended"
        else:
            spent.append(cost)
            continue
        glue = " " if reason.startswith("after") else "; "
        raise ReplayError(
            f"{path}: column '{column}', conversation {table[CONVERSATION][rows[0]]!r}: "
            f"given {value!r}{glue}{reason}"
        )
    return spent


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
    """Return an alpha for each of ``count`` streams, from one for all or one for each.

    Raises ReplayError for any other number of them.
    """
    if len(alphas) == 1:
        return [alphas[0]] * count
    if len(alphas) != count:
        raise ReplayError(f"--alpha: given {len(alphas)}; allowed: 1, or one for each of {count}")
    return alphas
