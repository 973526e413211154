"""What a log says, told by plain Python over its rows: slow, and independent of the package.

Nothing is imported that works figures out: each is said here a second time.
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
STRENGTH = ("feedback", "check", "judge", "implicit")
FAILURES = ("upstream", "no_deployment", "deadline", "client_gone", "refused")


@dataclass
class Asked:
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
        """Give the cost as measured, else as stated."""
        for each in self.energy:
            if each["call_id"] == call["call_id"] and each["cost"] is not None:
                return float(each["cost"])
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
        estimated = self.row["estimated_cost_largest"]
        return None if estimated is None else float(estimated)

    @property
    def said(self) -> list[Row]:
        """List the labels on the answer that the user saw."""
        return [each for each in self.labels if each["call_id"] == self.served["call_id"]]

    @property
    def verdict(self) -> Row | None:
        """Find the one that counts: of each source the newest that weighs, of these the strongest
        kind, of these the lowest value, of these the earliest."""
        newest: dict[str, Row] = {}
        for each in self.said:
            if each["weight"] > 0:
                newest[each["source"]] = each
        best: Row | None = None
        for each in sorted(newest.values(), key=lambda row: row["position"]):
            rank = (STRENGTH.index(each["kind"]), each["value"])
            if best is None or rank < (STRENGTH.index(best["kind"]), best["value"]):
                best = each
        return best


def read(path: Path) -> list[Asked]:
    """Read every request of a SQLite database, in the order of the log."""
    found: dict[str, Asked] = {}
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        for row in connection.execute("SELECT * FROM requests ORDER BY position"):
            found[row["request_id"]] = Asked(dict(row))
        for table, order in (
            *(("calls", "position"), ("labels", "position")),
            *(("call_energy", "call_id"), ("gradings", "position")),
        ):
            name = table.removeprefix("call_")
            for row in connection.execute(f"SELECT * FROM {table} ORDER BY {order}"):
                getattr(found[row["request_id"]], name).append(dict(row))
    return list(found.values())


def figures(asked: Iterable[Asked]) -> Figures:
    """Work out every figure of some requests; None where nothing is known."""
    asked = list(asked)
    answered = [each for each in asked if each.is_answered]
    explored = [each for each in asked if each.unseen]
    priced = [each for each in asked if each.served_cost is not None]
    compared = [each for each in answered if None not in (each.served_cost, each.baseline)]
    baseline = sum(each.baseline or 0.0 for each in compared)
    unseen = sum(each.unseen_cost + each.judging for each in asked)
    paid = sum(each.served_cost or 0.0 for each in compared) + unseen
    cost = sum(each.cost for each in asked)
    explored_cost = sum(each.unseen_cost for each in asked)
    timed = [each for each in asked if each.served["seconds"] is not None]
    joules = [each.row["encode_joules"] for each in timed]
    metered = [each for each in joules if each is not None]
    calls = [call for each in asked for call in each.calls]
    return {
        "requests": len(asked),
        "counted": sum(each.row["counted_with"] is None for each in asked),
        "answered": len(answered),
        "failed": len(asked) - len(answered),
        **{
            f"failed {who}": sum(each.served["failure"] == who for each in asked)
            for who in FAILURES
        },
        "cached": sum(each.served["is_cache_hit"] for each in asked),
        "measured in joules": sum(
            any(row["call_id"] == each.served["call_id"] for row in each.energy) for each in asked
        ),
        "labelled": sum(bool(each.said) for each in asked),
        **_judged(asked),
        **_of_sources(asked),
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
        "explored share": _share(len(explored), len(asked)),
        "explored cost": explored_cost,
        "explored cost share": _share(explored_cost, cost),
        "late features": sum(each.row["encode_seconds"] is None for each in timed),
        "call seconds": _share(sum(each.served["seconds"] for each in timed), len(timed)),
        "joules of predicting": _share(sum(metered), len(metered)),
        "queue": _share(sum(each.row["queue"] for each in asked), len(asked)),
        "calls": len(calls),
        "failed calls": sum(call["status"] == "failure" for call in calls),
        **_late(asked),
        **_of_gradings(asked),
    }


def _judged(asked: list[Asked]) -> Figures:
    """Weigh each verdict as many requests as its draw makes it stand for."""
    said = [(each.row["alpha"], each.verdict) for each in asked]
    known = [
        (alpha, row["value"], row["weight"] / (row["probability"] or 1.0))
        for alpha, row in said
        if row is not None
    ]
    weight = sum(each[2] for each in known)
    found: Figures = {
        "judged": len(known),
        "satisfied": _share(sum(value * each for _, value, each in known), weight),
        "promised": _share(sum(alpha * each for alpha, _, each in known), weight),
    }
    if found["promised"] is None and asked:
        found["promised"] = sum(alpha for alpha, _ in said) / len(asked)
    rate = found["satisfied"]
    if rate is None:
        return {**found, "low": None, "high": None}
    count, z = weight**2 / sum(each[2] ** 2 for each in known), 1.96
    half = z * sqrt(rate * (1 - rate) / count + (z / (2 * count)) ** 2)
    low, high = ((rate + z * z / (2 * count) + h) / (1 + z * z / count) for h in (-half, half))
    return {**found, "low": max(low, 0.0), "high": min(high, 1.0)}


def _of_sources(asked: list[Asked]) -> Figures:
    """Count, by source, the requests that it labelled, and those whose verdict is its label."""
    found: dict[str, float | None] = defaultdict(int)
    values: dict[str, list[float]] = defaultdict(list)
    for each in asked:
        for source, value in {row["source"]: row["value"] for row in each.said}.items():
            values[source].append(value)
        verdict = each.verdict
        for source in {row["source"] for row in each.said}:
            is_counting = verdict is not None and verdict["source"] == source
            found[f"counting {source}"] = (found[f"counting {source}"] or 0) + is_counting
    for source, said in values.items():
        found[f"labels {source}"] = len(said)
        found[f"rate {source}"] = sum(said) / len(said)
    return dict(found)


def _late(asked: list[Asked]) -> Figures:
    """Count the answers that took longer than their limit, and those that tell."""
    limited = [each for each in asked if each.row["limits"] not in (None, "null")]
    told = [each.served for each in limited if each.is_answered]
    told = [call for call in told if call["is_cache_hit"] or call["seconds"] is not None]
    late = [call for call in told if not call["is_cache_hit"] and call["seconds"] > 0.3]
    return {"late": len(late), "ended in time or late": len(told)} if limited else {}


def _of_gradings(asked: list[Asked]) -> Figures:
    found: dict[str, float | None] = {"judging cost": 0.0}
    for row in (row for each in asked for row in each.gradings):
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
