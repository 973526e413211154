"""What a log holds, computed by plain Python over its rows: slow, and independent of the package.

Nothing is imported that works figures out: each is computed here a second time.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Figures = dict[str, float | None]
STRENGTH = ("feedback", "check", "judge")
FAILURES = ("upstream", "no_deployment", "deadline", "client_gone", "refused", "unknown")


@dataclass
class Request:
    """One request, with the rows about it, in the order of the log."""

    row: Row
    calls: list[Row] = field(default_factory=list)
    labels: list[Row] = field(default_factory=list)
    energy: list[Row] = field(default_factory=list)
    gradings: list[Row] = field(default_factory=list)

    @property
    def day(self) -> str:
        return str(self.row["created_at"])[:10]

    @property
    def served(self) -> Row:
        return next(call for call in self.calls if call["role"] == "served")

    @property
    def unseen(self) -> list[Row]:
        return [call for call in self.calls if call["role"] == "exploration"]

    def cost_of(self, call: Row) -> float | None:
        """Give the cost."""
        return None if call["cost"] is None else float(call["cost"])

    @property
    def served_cost(self) -> float | None:
        return self.cost_of(self.served)

    @property
    def unseen_cost(self) -> float:
        return sum(self.cost_of(call) or 0.0 for call in self.unseen)

    @property
    def judging(self) -> float:
        return sum(row["zoo_cost"] or 0.0 for row in self.gradings)

    @property
    def cost(self) -> float:
        return (self.served_cost or 0.0) + self.unseen_cost

    @property
    def is_answered(self) -> bool:
        return bool(self.served["status"] == "success")

    @property
    def baseline(self) -> float | None:
        """Give what the largest model alone would have cost."""
        if self.served["is_cache_hit"]:
            return None if self.served["cost"] is None else float(self.served["cost"])
        largest = self.row["largest"]
        if self.served["candidate"] == largest:
            return self.served_cost
        called = [self.cost_of(call) for call in self.unseen if call["candidate"] == largest]
        known = [cost for cost in called if cost is not None]
        if known:
            return max(known)
        expected, priced = self.row["estimated_cost_largest"], self.served["cost_largest"]
        if expected is None:  # it could not have served
            return None
        return float(expected if priced is None else priced)

    @property
    def served_labels(self) -> list[Row]:
        """List the labels on the answer that the user saw."""
        return [each for each in self.labels if each["call_id"] == self.served["call_id"]]

    @property
    def verdict(self) -> Row | None:
        """Find the one that counts: of each source the newest that weighs, of these the strongest
        kind, of these the lowest value, of these the earliest."""
        newest: dict[str, Row] = {}
        for each in self.served_labels:
            if each["weight"] > 0:
                newest[each["source"]] = each
        best: Row | None = None
        for each in sorted(newest.values(), key=lambda row: row["position"]):
            rank = (STRENGTH.index(each["kind"]), each["value"])
            if best is None or rank < (STRENGTH.index(best["kind"]), best["value"]):
                best = each
        return best


def read(path: Path) -> list[Request]:
    """Read every request of a SQLite database, in the order of the log."""
    found: dict[str, Request] = {}
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        for row in connection.execute("SELECT * FROM requests ORDER BY position"):
            found[row["request_id"]] = Request(dict(row))
        for table, order in (
            *(("calls", "position"), ("labels", "position")),
            *(("gradings", "position"),),
        ):
            name = table.removeprefix("call_")
            for row in connection.execute(f"SELECT * FROM {table} ORDER BY {order}"):
                getattr(found[row["request_id"]], name).append(dict(row))
    return list(found.values())


def figures(requests: Iterable[Request]) -> Figures:
    """Work out every figure of some requests; None where nothing is known."""
    requests = list(requests)
    answered = [each for each in requests if each.is_answered]
    explored = [each for each in requests if each.unseen]
    priced = [each for each in requests if each.served_cost is not None]
    compared = [each for each in answered if None not in (each.served_cost, each.baseline)]
    baseline = sum(each.baseline or 0.0 for each in compared)
    unseen = sum(each.unseen_cost + each.judging for each in requests)
    paid = sum(each.served_cost or 0.0 for each in compared) + unseen
    cost = sum(each.cost for each in requests)
    explored_cost = sum(each.unseen_cost for each in requests)
    timed = [each for each in requests if each.served["seconds"] is not None]
    calls = [call for each in requests for call in each.calls]
    return {
        "requests": len(requests),
        "answered": len(answered),
        "failed": len(requests) - len(answered),
        **{
            f"failed {who}": sum(each.served["failure"] == who for each in requests)
            for who in FAILURES
        },
        "cached": sum(each.served["is_cache_hit"] for each in requests),
        "labelled": sum(bool(each.served_labels) for each in requests),
        **_judged(requests),
        **_of_sources(requests),
        "cost": cost,
        "cost per request": _share(sum(each.cost for each in priced), len(priced)),
        "answers without cost": sum(
            call["status"] == "success" and call["cost"] is None for call in calls
        ),
        "compared": len(compared),
        "baseline cost": baseline,
        "saved": baseline - paid,
        "saved share": _share(baseline - paid, baseline),
        "explored": len(explored),
        "explored share": _share(len(explored), len(requests)),
        "explored cost": explored_cost,
        "explored cost share": _share(explored_cost, cost),
        "late features": sum(each.row["encode_seconds"] is None for each in timed),
        "call seconds": _share(sum(each.served["seconds"] for each in timed), len(timed)),
        "queue": _share(sum(each.row["queue"] for each in requests), len(requests)),
        "calls": len(calls),
        "failed calls": sum(call["status"] == "failure" for call in calls),
        **_of_gradings(requests),
    }


def _judged(requests: list[Request]) -> Figures:
    """Weigh each verdict as many requests as its draw makes it stand for."""
    verdicts = [(each.row["alpha"], each.verdict) for each in requests]
    known = [
        (alpha, row["value"], row["weight"] / (row["probability"] or 1.0))
        for alpha, row in verdicts
        if row is not None
    ]
    weight = sum(each[2] for each in known)
    found: Figures = {
        "judged": len(known),
        "satisfied": _share(sum(value * each for _, value, each in known), weight),
        "promised": _share(sum(alpha * each for alpha, _, each in known), weight),
    }
    if found["promised"] is None and requests:
        found["promised"] = sum(alpha for alpha, _ in verdicts) / len(requests)
    rate = found["satisfied"]
    if rate is None:
        return {**found, "low": None, "high": None}
    count, z = weight**2 / sum(each[2] ** 2 for each in known), 1.96
    half = z * sqrt(rate * (1 - rate) / count + (z / (2 * count)) ** 2)
    low, high = ((rate + z * z / (2 * count) + h) / (1 + z * z / count) for h in (-half, half))
    return {**found, "low": max(low, 0.0), "high": min(high, 1.0)}


def _of_sources(requests: list[Request]) -> Figures:
    """Count, by source, the requests that it labelled, and those whose verdict is its label."""
    found: dict[str, float | None] = defaultdict(int)
    values: dict[str, list[float]] = defaultdict(list)
    for each in requests:
        for source, value in {row["source"]: row["value"] for row in each.served_labels}.items():
            values[source].append(value)
        verdict = each.verdict
        for source in {row["source"] for row in each.served_labels}:
            is_counting = verdict is not None and verdict["source"] == source
            found[f"counting {source}"] = (found[f"counting {source}"] or 0) + is_counting
    for source, given in values.items():
        found[f"labels {source}"] = len(given)
        found[f"rate {source}"] = sum(given) / len(given)
    return dict(found)


def _of_gradings(requests: list[Request]) -> Figures:
    found: dict[str, float | None] = {"judging cost": 0.0}
    for row in (row for each in requests for row in each.gradings):
        judge, cost = row["judge"], row["cost"] or 0.0
        found["judging cost"] = (found["judging cost"] or 0.0) + cost
        for name, more in (
            *((f"gradings {judge}", 1), (f"graded {judge}", row["status"] == "graded")),
            (f"cost of {judge}", cost),
        ):
            found[name] = (found.get(name) or 0) + more
    return found


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
