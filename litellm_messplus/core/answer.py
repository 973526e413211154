"""The surface of an answer: its length, its form, whether it names a result, how it ends.

Why it exists: what an answer looks like shows whether it satisfies, beyond what its prompt showed:
an area under the curve of .60 to .85 among prompts predicted alike, for free. The numbers are
counted in the first and the last characters, in less than 0.1 ms for an answer of any length.
"""

import json
import math
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

AnswerSurface = NDArray[np.float32]
"""The numbers of one answer, shape (len(ANSWER_NUMBERS),), as in the log; NaN if not known."""


class AnswerReading(NamedTuple):
    """Predictions of the chosen candidate's satisfaction, from the ``prompt`` and from its
    ``answer``; the candidate that it ``goes_on_to``, to answer instead, and the satisfaction
    ``expected`` of that; None if the answer is kept."""

    prompt: float
    answer: float
    goes_on_to: str | None = None
    expected: float | None = None


ANSWER_VERSION = "answer-3"
"""Version of the numbers' meaning: those logged under another version are not learned from."""
HEAD = TAIL = 1500
"""Characters read at the beginning and at the end of a longer answer."""

_CLASSES = {
    "lines": "\n",
    "digits": "0123456789",
    "commas": ",",
    "brackets": "()[]{}",
    "stops": ".!?;:",
    "operators": "+-*/=<>^%",
    "markup": "`#|$\\_",
}
_HEDGES = ("however", "wait", "sorry", "but ", "maybe", "perhaps", "not sure", "might", "unclear")
_REFUSALS = ("i cannot", "i can't", "i'm unable", "i am unable", "as an ai", "i do not have")
_NAMES = ("answer is", "answer:", '"answer"', "[yes]", "[no]", "\\boxed", "therefore", "result is")
_CLOSED = frozenset(".!?)]}\"'`")

OWN_SCORE = "own score"
ANSWER_NUMBERS = (
    "characters",
    *_CLASSES,
    "characters of the last line",
    "hedges",
    "refusals",
    "tool calls",
    "share of different words",
    "share of repeated lines",
    "names its result",
    "place of the result",
    "is JSON",
    "ends closed",
    "was cut off",
    OWN_SCORE,
)
"""What each number is: counts as log2(1 + count), then shares and marks from 0 to 1, then a score
of one's own: not known where it gives nothing."""
SCORE_SECONDS = 1.0
"""Longest time for a score of one's own: a client may wait for it."""


class Answer(NamedTuple):
    """An answer as a client gets it: its text, the number of its tool calls, and whether it ended
    only because it reached the longest length allowed. ``characters`` is the length of the whole
    text if ``text`` is only its beginning and end. ``score`` is a score of one's own, NaN if it is
    unknown."""

    text: str
    tools: int = 0
    was_cut: bool = False
    characters: int | None = None
    score: float = math.nan


def read_answer(answer: Answer) -> AnswerSurface:
    """Read the numbers of an answer, read-only. Any text has them: empty, garbled, or of 10 MB."""
    whole = answer.text
    text = whole if len(whole) <= HEAD + TAIL else whole[:HEAD] + whole[-TAIL:]
    lower = text.lower()
    read = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    classes = (np.bincount(read, minlength=256) @ _COUNTED).tolist()
    words, stripped = lower.split(), text.rstrip()
    lines = [line for line in stripped.split("\n") if line]
    places = [place for place in map(lower.find, _NAMES) if place >= 0]
    counts = [
        len(whole) if answer.characters is None else answer.characters,
        *classes,
        len(lines[-1]) if lines else 0,
        sum(map(lower.count, _HEDGES)),
        sum(map(lower.count, _REFUSALS)),
        answer.tools,
    ]
    shares = [
        len(set(words)) / (len(words) or 1),
        1.0 - len(set(lines)) / (len(lines) or 1),
        bool(places),
        min(places, default=0) / (len(text) or 1),
        _is_json(stripped, is_whole=text is whole),
        stripped[-1:] in _CLOSED,
        answer.was_cut,
        answer.score,
    ]
    surface = np.concatenate((np.log2(1.0 + np.array(counts)), shares)).astype(np.float32)
    surface.flags.writeable = False
    return surface


def as_score(found: object) -> float:
    """Return a score. Raises TypeError or ValueError for what is none."""
    if isinstance(found, bool) or not isinstance(found, Real):
        raise TypeError(f"returned a {type(found).__name__}, not a score or None")
    value = float(found)
    if not -1.0 <= value <= 1.0:  # nor a NaN
        raise ValueError("returned a number that is not from -1 to 1")
    return value


def with_score(surface: AnswerSurface, score: float) -> AnswerSurface:
    """Return the numbers of an answer with a score of one's own."""
    found = surface.copy()
    found[ANSWER_NUMBERS.index(OWN_SCORE)] = score
    found.flags.writeable = False
    return found


def _is_json(text: str, *, is_whole: bool) -> bool:
    """Tell whether the text is a JSON object or list, in a fence or without; a text that is too
    long to parse is, if it begins and ends like one."""
    inner = text.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if inner[:1] + inner[-1:] not in ("{}", "[]"):
        return False
    if not is_whole:
        return True
    try:
        json.loads(inner)
    except (ValueError, RecursionError):
        return False
    return True


_COUNTED = np.column_stack(
    [np.isin(np.arange(256), list(map(ord, members))) for members in _CLASSES.values()]
).astype(np.float64)
"""Which bytes belong to which class, shape (256, classes)."""
