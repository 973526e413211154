"""Recordings of conversations: a row is a turn, and a conversation becomes one request.

It is decided at its first turn and held on that model, which is what was recorded: each model's
turns are those that followed on its own answers. What a switch would have led to, nobody knows.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from litellm_messplus.replay.recording import ReplayError

CONVERSATION, TURN = "conversation", "turn"
Columns = Mapping[str, Sequence[Any]]
"""A table: the values of each column, all of the same length; in a CSV all are text."""
EMPTY = (None, "")


def has_turns(table: Columns) -> bool:
    """Tell whether a row is a turn of a conversation, and no request of its own."""
    return CONVERSATION in table


def by_conversation(
    table: Columns, models: tuple[str, ...], verdict: str, cost: str, path: Path
) -> Columns:
    """Return a row for each conversation, in the order of their first turns: its first prompt, the
    sum of what each model's turns cost, and the verdict at each model's last turn.

    ``verdict`` and ``cost`` are the endings of the models' columns. Raises ReplayError for a number
    of a turn or a cost that is none, and where a model goes on after it had ended.
    """
    conversations = _ordered(table, path)
    found: dict[str, list[Any]] = {
        "prompt": [table["prompt"][rows[0]] for rows in conversations],
    }
    for model in models:
        spent = [_costs(table, f"{model}{cost}", rows, path) for rows in conversations]
        said = table[f"{model}{verdict}"]
        found[f"{model}{cost}"] = [math.fsum(each) if each else None for each in spent]
        found[f"{model}{verdict}"] = [
            said[rows[len(each) - 1]] if each else None
            for rows, each in zip(conversations, spent, strict=True)
        ]
    return found


def note(table: Columns) -> str:
    """Say what a reader of the figures must know."""
    turns, conversations = len(table[CONVERSATION]), len(set(table[CONVERSATION]))
    return (
        f"{conversations} conversations of {turns / conversations:.1f} turns: each counts "
        "as one request, is decided at its first turn and held on that model; no switch is replayed"
    )


def _ordered(table: Columns, path: Path) -> list[list[int]]:
    """Return the rows of each conversation: conversations as they begin, their turns by number
    where there is one, else as they stand."""
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
    if number is None or math.isnan(number):
        raise ReplayError(
            f"{path}: column '{TURN}', row {row + 1}: given {given!r}; allowed: a number"
        )
    return number


def _costs(table: Columns, column: str, rows: list[int], path: Path) -> list[float]:
    """Return what each turn of the model cost, up to its last one: an empty turn is after that."""
    given = [table[column][row] for row in rows]
    spent: list[float] = []
    for turn, value in enumerate(given):
        if value in EMPTY:
            continue
        cost = _number(value)
        if cost is None or not 0.0 <= cost < math.inf:
            said = "allowed: a number of at least 0, or empty"
        elif turn > len(spent):
            said = "after an empty turn; allowed: empty from where the model had ended"
        else:
            spent.append(cost)
            continue
        glue = " " if said.startswith("after") else "; "
        raise ReplayError(
            f"{path}: column '{column}', conversation {table[CONVERSATION][rows[0]]!r}: "
            f"given {value!r}{glue}{said}"
        )
    return spent


def _number(given: Any) -> float | None:
    try:
        return float(given)
    except (TypeError, ValueError):
        return None
