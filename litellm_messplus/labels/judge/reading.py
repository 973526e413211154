"""Reading a judge's reply: one verdict for each answer, or nothing at all."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from litellm_messplus.labels.judge.prompt import answer_names

LONGEST_REPLY = 100_000
"""Characters; a judge that writes more has lost its way."""
MOST_OBJECTS = 50
"""That are tried: reading must not keep the event loop, whatever was written."""
BEGINNING = re.compile(r'\{\s*"answer_\d+"\s*:')


class NonsenseError(ValueError):
    """The reply holds no verdicts. Its words are not in the message: they may be a user's."""


@dataclass(frozen=True, slots=True)
class Grade:
    """Satisfaction with one answer from 0 to 1, and the judge's reason."""

    value: float
    reason: str | None


def grades(reply: str, answers: int) -> tuple[Grade, ...]:
    """The verdicts in the order in which the answers were shown.

    Whatever stands around the JSON (a code fence, thoughts, politeness) is passed over. Raises
    NonsenseError unless there is exactly one verdict for each answer, and no two that differ.
    """
    if len(reply) > LONGEST_REPLY:
        raise NonsenseError(f"a reply of {len(reply)} characters")
    found = [_grades(value, answers) for value in _objects(reply)]
    read = [every for every in found if every is not None]
    if not read:
        raise NonsenseError("no verdict, and no other than one, on each answer")
    if any(_values(other) != _values(read[-1]) for other in read):
        raise NonsenseError("verdicts that contradict each other")
    return read[-1]


def _values(every: tuple[Grade, ...]) -> list[float]:
    return [grade.value for grade in every]


def _objects(text: str) -> Iterator[Any]:
    """The JSON objects in a text that begin with an answer, none of them inside another."""
    decoder = json.JSONDecoder(object_pairs_hook=_each_key_once)
    end = 0
    for start in islice(BEGINNING.finditer(text), MOST_OBJECTS):
        if start.start() < end:
            continue
        try:
            value, end = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        yield value


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Python takes the last of two equal keys: a second verdict in secret."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else {}


def _grades(value: Any, answers: int) -> tuple[Grade, ...] | None:
    names = answer_names(answers)
    if not isinstance(value, Mapping) or set(value) != set(names):
        return None
    found = [_grade(value[name]) for name in names]
    every = tuple(grade for grade in found if grade is not None)
    return every if len(every) == answers else None


def _grade(verdict: Any) -> Grade | None:
    """Of `{"reason": ..., "satisfied": true}`; a judge that no schema holds may give a number."""
    if not isinstance(verdict, Mapping):
        return None
    satisfied, reason = verdict.get("satisfied"), verdict.get("reason")
    if not isinstance(satisfied, bool | int | float) or not 0.0 <= satisfied <= 1.0:
        return None
    return Grade(float(satisfied), reason if isinstance(reason, str) and reason else None)
