"""What one request adds to the tables of sums, from what the log says of it.

The views `logged_request_sums`, `logged_call_sums`, `logged_label_sums` and `logged_grading_sums`
say the same in SQL of the whole log; a test holds the two to each other. Here it is asked of the
few requests that a batch is about, as they were and as they are.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date
from typing import Any

from sqlalchemy import RowMapping, Table

from litellm_messplus.records import served_call_id
from litellm_messplus.store.sum_tables import (
    call_sums,
    grading_sums,
    hourly_call_sums,
    hourly_request_sums,
    label_sums,
    request_sums,
)
from litellm_messplus.vocabulary import PRECEDENCE, CallRole, CallStatus

Row = Mapping[str, Any] | RowMapping
"""A row of the log, read or about to be written."""
Key = tuple[Any, ...]
"""The primary key of a row of sums, in the order of its columns."""
Figures = dict[str, float]
"""Columns of a row of sums; what is not named is 0, or unknown."""
Sums = dict[tuple[Table, Key], Figures]
Ranks = Mapping[str, int]
"""Of one zoo: 1 is the strongest kind of labels; a kind that is not named does not count."""

HOURLY_FIGURES = tuple(
    column.name
    for column in hourly_request_sums.columns
    if not column.primary_key and column.name in request_sums.c
)
"""Figures of a request that are kept by hour too, in the words of the sums by day."""

DEFAULT_RANKS: Ranks = {kind.value: place for place, kind in enumerate(PRECEDENCE, start=1)}


@dataclass(slots=True)
class Logged:
    """One request and all that the log has about it; of its labels, those that may say something.

    ``labels`` are in the order of the log, and of each source on a call the newest, and the newest
    that weighs, are among them. ``energy`` is the measured cost of a call by its id.
    """

    request: Row
    calls: list[Row] = field(default_factory=list)
    energy: dict[str, float | None] = field(default_factory=dict)
    labels: list[Row] = field(default_factory=list)

    @property
    def day(self) -> date:
        """The day on which it counts, whenever its calls end and its labels come."""
        return day_of(self.request["created_at"])

    @property
    def served(self) -> Row | None:
        """The call that the user saw, once it has ended."""
        return next((call for call in self.calls if call["role"] == CallRole.SERVED), None)

    def cost(self, call: Row) -> float | None:
        """Return the cost as it was measured, else as it was stated; None where nobody knows."""
        measured = self.energy.get(call["call_id"])
        cost: float | None = call["cost"] if measured is None else measured
        return cost


def day_of(moment: Any) -> date:
    """Return the date, UTC."""
    day: date = (moment if moment.tzinfo is UTC else moment.astimezone(UTC)).date()
    return day


def hour_of(moment: Any) -> int:
    """Return the hour of the day, UTC, from 0."""
    hour: int = (moment if moment.tzinfo is UTC else moment.astimezone(UTC)).hour
    return hour


def contribution(logged: Logged, ranks: Ranks) -> Sums:
    """Add up what the log says of one request."""
    request = logged.request
    promise = (logged.day, request["zoo"], request["service_level"])
    verdicts = _verdicts(logged.labels, ranks) if logged.labels else {}
    hour = (*promise, hour_of(request["created_at"]))
    figures = _of_request(logged, verdicts)
    sums: Sums = {
        (request_sums, (*promise, request["alpha"])): figures,
        (hourly_request_sums, (*hour, request["alpha"])): _by_hour(request, figures),
    }
    for call in logged.calls:
        candidate, role = call["candidate"] or "", str(call["role"])
        key = (*promise, candidate, call["model"] or "", role)
        of_call = _of_call(logged, call, verdicts.get(call["call_id"]))
        _add(sums, (call_sums, key), of_call)
        counts: Figures = {name: of_call[name] for name in ("calls", "failures") if name in of_call}
        _add(sums, (hourly_call_sums, (*hour, candidate, role)), counts)
    if logged.labels:
        for source, figures in _of_labels(logged, verdicts):
            _add(sums, (label_sums, (*promise, *source)), figures)
    return sums


def of_grading(grading: Row, zoo: str) -> Sums:
    """Compute what a grading adds; it is never changed."""
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
    return {(grading_sums, (day_of(grading["created_at"]), zoo, grading["judge"])): figures}


def _add(sums: Sums, where: tuple[Table, Key], figures: Figures) -> None:
    found = sums.setdefault(where, {})
    for name, figure in figures.items():
        found[name] = found.get(name, 0) + figure


def _of_request(logged: Logged, verdicts: Mapping[str, Row]) -> Figures:
    request, served = logged.request, logged.served
    figures: Figures = {"requests": 1}
    if request["counted_with"] is None:
        figures["counted"] = 1
    if request["is_exploration"]:
        figures["explorations"] = 1
    if logged.labels:
        call_id = served_call_id(request["request_id"])
        figures["labelled"] = int(any(label["call_id"] == call_id for label in logged.labels))
        figures |= _of_verdict(verdicts.get(call_id), "answered")
    if not logged.calls:
        return figures
    explored = _explored(logged)
    exploration_cost = sum(cost for call in explored if (cost := logged.cost(call)) is not None)
    served_cost = None if served is None else logged.cost(served)
    cost = (served_cost or 0.0) + exploration_cost
    figures["cost"], figures["exploration_cost"] = cost, exploration_cost
    if served is None:
        return figures
    if served_cost is not None:
        figures |= {"priced": 1, "priced_cost": cost}
        largest = _cost_of_largest(logged, served, explored)
        if served["status"] == CallStatus.SUCCESS and largest is not None:
            figures |= {"compared": 1, "compared_cost": cost, "compared_cost_largest": largest}
    if served["seconds"] is not None:
        figures |= _of_time(request, served["seconds"])
    return figures


def _by_hour(request: Row, figures: Figures) -> Figures:
    found = {name: figures[name] for name in HOURLY_FIGURES if name in figures}
    found["queue"] = request["queue"]
    return found


def _explored(logged: Logged) -> Sequence[Row]:
    if not logged.request["is_exploration"]:
        return ()
    return [call for call in logged.calls if call["role"] == CallRole.EXPLORATION]


def _cost_of_largest(logged: Logged, served: Row, explored: Sequence[Row]) -> float | None:
    """Compute what the largest alone would have cost: measured where it was called, else
    estimated."""
    request = logged.request
    if served["is_cache_hit"]:  # the largest's answer would have been repeated as well
        stated: float | None = served["cost"]
        return stated
    if served["candidate"] == request["largest"]:
        return logged.cost(served)
    costs = [logged.cost(call) for call in explored if call["candidate"] == request["largest"]]
    known = [cost for cost in costs if cost is not None]
    estimated: float | None = request["estimated_cost_largest"]
    return max(known) if known else estimated


def _of_time(request: Row, seconds: float) -> Figures:
    predicting, joules = request["encode_seconds"], request["encode_joules"]
    return {
        "timed": 1,
        "late": int(predicting is None),
        "predicting_seconds": predicting or 0.0,
        "deciding_seconds": request["decision_seconds"] - (predicting or 0.0),
        "call_seconds": seconds,
        "metered": int(joules is not None),
        "joules": joules or 0.0,
    }


def _of_call(logged: Logged, call: Row, verdict: Row | None) -> Figures:
    succeeded, cost = call["status"] == CallStatus.SUCCESS, logged.cost(call)
    figures: Figures = {"calls": 1}
    if not succeeded:
        figures["failures"] = 1
    elif call["cost"] is None:
        figures["unstated"] = 1
    if cost is None:
        figures["calls_without_cost"] = 1
    else:
        figures["cost"] = cost
    for name in ("prompt_tokens", "completion_tokens"):
        if (tokens := call[name]) is not None:
            figures[name] = tokens
    if succeeded and call["candidate"] is not None and not call["is_cache_hit"]:
        figures["own"] = 1
        if cost is not None:
            figures |= {"priced": 1, "priced_cost": cost}
        figures |= _of_verdict(verdict, "judged")
    return figures


def _of_verdict(verdict: Row | None, count: str) -> Figures:
    if verdict is None:
        return {}
    value = verdict["value"]
    weight = verdict["weight"] / (verdict["probability"] or 1.0)  # it stands for so many requests
    return {
        count: 1,
        "weight": weight,
        "weight_squared": weight * weight,
        "weighted_satisfaction": weight * value,
    }


def _of_labels(
    logged: Logged, verdicts: Mapping[str, Row]
) -> Iterator[tuple[tuple[str, str], Figures]]:
    """Yield the figures of the labels on the served call, by kind and source."""
    call_id = served_call_id(logged.request["request_id"])
    newest = {label["source"]: label for label in logged.labels if label["call_id"] == call_id}
    for label in newest.values():
        value = label["value"]
        yield (
            (str(label["kind"]), label["source"]),
            {"labelled": 1, "satisfaction": value, "satisfaction_squared": value * value},
        )
    verdict = verdicts.get(call_id)
    if verdict is not None:
        yield (str(verdict["kind"]), verdict["source"]), {"counting": 1}


def _verdicts(labels: Sequence[Row], ranks: Ranks) -> dict[str, Row]:
    """Find, by call, the label that counts: the rule of the view `verdicts`."""
    newest: dict[str, dict[str, Row]] = defaultdict(dict)
    for label in labels:
        if label["weight"] > 0.0:
            newest[label["call_id"]][label["source"]] = label
    found: dict[str, Row] = {}
    for call_id, of_sources in newest.items():
        counting = [label for label in of_sources.values() if label["kind"] in ranks]
        if counting:
            found[call_id] = min(
                counting,
                key=lambda label: (ranks[label["kind"]], label["value"], label["position"]),
            )
    return found
