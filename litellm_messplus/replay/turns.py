"""Recordings of conversations: a row is a turn, and a conversation becomes one request.

It is decided at its first turn and held on that model, which is what was recorded: each model's
turns are those that followed on its own answers. What a switch would have led to, nobody knows.
"""

from pathlib import Path

import polars as pl

from litellm_messplus.replay.recording import ReplayError

CONVERSATION, TURN = "conversation", "turn"


def has_turns(frame: pl.DataFrame) -> bool:
    """Whether a row is a turn of a conversation, and no request of its own."""
    return CONVERSATION in frame.columns


def by_conversation(
    frame: pl.DataFrame, models: tuple[str, ...], verdict: str, cost: str, path: Path
) -> pl.DataFrame:
    """A row for each conversation, in the order of their first turns: its first prompt, the sum of
    what each model's turns cost, and the verdict at each model's last turn.

    ``verdict`` and ``cost`` are the endings of the models' columns. Raises ReplayError for a number
    of a turn or a cost that is none, and where a model goes on after it had ended.
    """
    ordered = _ordered(frame, path)
    summed = []
    for model in models:
        _check_costs(ordered, f"{model}{cost}", path)
        spent = pl.col(f"{model}{cost}")
        summed += [
            pl.when(spent.is_not_null().any()).then(spent.cast(pl.Float64).sum()),
            pl.col(f"{model}{verdict}").filter(spent.is_not_null()).last(),
        ]
    return ordered.group_by(CONVERSATION, maintain_order=True).agg(
        pl.col("prompt").first(), *summed
    )


def note(frame: pl.DataFrame) -> str:
    """What a reader of the figures must know."""
    conversations = frame[CONVERSATION].n_unique()
    return (
        f"{conversations} conversations of {frame.height / conversations:.1f} turns: each counts "
        "as one request, is decided at its first turn and held on that model; no switch is replayed"
    )


def _ordered(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Conversations as they begin, their turns by number where there is one, else as they stand."""
    if "prompt" not in frame.columns:
        raise ReplayError(f"{path}: column 'prompt': given none; allowed: the text of each turn")
    numbered = frame.with_row_index("row")
    if TURN not in frame.columns:
        turns = pl.col("row").cast(pl.Float64)
    else:
        turns = pl.col(TURN).cast(pl.Float64, strict=False)
        wrong = numbered.filter(turns.is_null() | turns.is_nan())
        if wrong.height:
            raise ReplayError(
                f"{path}: column '{TURN}', row {wrong['row'][0] + 1}: given {wrong[TURN][0]!r}; "
                "allowed: a number"
            )
    begun = pl.col("row").min().over(CONVERSATION)
    return numbered.sort([begun, turns], maintain_order=True)


def _check_costs(ordered: pl.DataFrame, column: str, path: Path) -> None:
    """An empty turn is one after the model's last; all others cost something, or nothing."""
    cost, is_there = pl.col(column), pl.col(column).is_not_null()
    amount = cost.cast(pl.Float64, strict=False)
    is_amount = (amount.is_finite() & (amount >= 0.0)).fill_null(False)
    goes_on = is_there & ~is_there.shift(1, fill_value=True).over(CONVERSATION)
    for is_wrong, said in (
        (is_there & ~is_amount, "{given}; allowed: a number of at least 0, or empty"),
        (goes_on, "{given} after an empty turn; allowed: empty from where the model had ended"),
    ):
        wrong = ordered.filter(is_wrong)
        if wrong.height:
            given = said.format(given=repr(wrong[column][0]))
            conversation = wrong[CONVERSATION][0]
            raise ReplayError(
                f"{path}: column '{column}', conversation {conversation!r}: given {given}"
            )
