"""The amounts that one request, or one grading, adds to the tables of sums."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Table

from litellm_messplus.figures.tally import FIGURES, amounts
from litellm_messplus.learning.logged import Logged
from litellm_messplus.learning.outcome import Outcome, Row, Verdicts, in_utc, succeeded
from litellm_messplus.records import served_call_id
from litellm_messplus.store.tables import (
    call_sums,
    grading_sums,
    label_sums,
    request_sums,
)

Key = tuple[Any, ...]
"""The primary key of a row of sums, in the order of its columns."""
Figures = dict[str, float]
"""Columns of a row of sums; a missing one is 0, or unknown."""
Sums = dict[tuple[Table, Key], Figures]

SUMS = (request_sums, call_sums, label_sums, grading_sums)
HIGHEST = "newest_graded"
"""The only column that is not a sum: the higher of two values is kept."""
_NO_FIGURES: Figures = {}


def of_request(logged: Logged, found: Outcome, verdicts: Verdicts) -> Sums:
    """Compute what a request with its calls and labels adds."""
    promise = (found.day, found.zoo, found.service_level)
    hour = (*promise, found.hour)
    amounts_of_all = zip(FIGURES, amounts(found), strict=True)
    figures: Figures = {name: amount for name, amount in amounts_of_all if amount}
    sums: Sums = {(request_sums, (*hour, found.alpha)): figures}
    for call in logged.calls:
        key = (*hour, call["candidate"] or "", call["model"] or "", str(call["role"]))
        _add(sums, (call_sums, key), _of_call(call, call["cost"]))
    if logged.labels:
        for source, figures in _of_labels(logged, verdicts):
            _add(sums, (label_sums, (*promise, *source)), figures)
    return sums


def of_grading(grading: Row, zoo: str) -> Sums:
    """Compute what a grading adds; gradings never change."""
    cost, is_graded = grading["cost"], grading["status"] == "graded"
    figures: Figures = {
        "gradings": 1,
        "graded": int(is_graded),
        "answers": grading["answers"],
        "gradings_without_cost": int(cost is None),
    }
    if cost is not None:
        figures["cost"] = cost
    if is_graded:
        figures["newest_graded"] = grading["position"]
    return {(grading_sums, (in_utc(grading["created_at"]).date(), zoo, grading["judge"])): figures}


def _add(sums: Sums, where: tuple[Table, Key], figures: Figures) -> None:
    found = sums.setdefault(where, {})
    for name, figure in figures.items():
        found[name] = found.get(name, 0) + figure


def _of_call(call: Row, cost: float | None) -> Figures:
    figures: Figures = {"calls": 1}
    if not succeeded(call):
        figures["failures"] = 1
    if cost is None:
        figures["calls_without_cost"] = 1
    else:
        figures["cost"] = cost
    for name in ("prompt_tokens", "completion_tokens"):
        if (tokens := call[name]) is not None:
            figures[name] = tokens
    return figures


def _of_labels(logged: Logged, verdicts: Verdicts) -> Iterator[tuple[tuple[str, str], Figures]]:
    """Yield the figures of the labels on the served call, by kind and source."""
    call_id = served_call_id(logged.request["request_id"])
    newest = {label.source: label for label in logged.labels if label.call_id == call_id}
    for label in newest.values():
        value = label.value
        yield (
            (str(label.kind), label.source),
            {"labelled": 1, "satisfaction": value, "satisfaction_squared": value * value},
        )
    verdict = verdicts.get(call_id)
    if verdict is not None:
        yield (str(verdict.kind), verdict.source), {"counting": 1}


# The difference that a batch makes.


def add_change(changed: Sums, before: Sums, after: Sums) -> None:
    """Add ``after - before``. Equal figures add nothing, so rounding does not accumulate."""
    for where in {**after, **before}:
        was, now = before.get(where, _NO_FIGURES), after.get(where, _NO_FIGURES)
        if was == now:
            continue
        found = changed.setdefault(where, {})
        for name in {**now, **was} if was else now:
            old, new = was.get(name), now.get(name)
            if name == HIGHEST:
                found[name] = max(found.get(name, 0), new or 0)
            elif old != new:
                found[name] = found.get(name, 0) + ((new or 0) - (old or 0))
