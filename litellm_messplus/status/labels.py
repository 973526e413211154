"""The labels of each source, and which of them count."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, column, func, select, table
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.interval import Interval
from litellm_messplus.figures.tally import interval_of
from litellm_messplus.labels.agreement import ENOUGH, Agreement, PositionBias
from litellm_messplus.runtime.vocabulary import PRECEDENCE, LabelKind
from litellm_messplus.status.reading import Key, Start, within
from litellm_messplus.store.hours import CALLS, LABELS
from litellm_messplus.store.judging import agreements, newest_gradings, preferences
from litellm_messplus.store.tables import JUDGING, gradings, labels, log_head, requests, served_call

# The labels of each source.

CURRENT = table("current_labels", *map(column, ("call_id", "kind", "source", "value")))
"""The view, with the columns read here: the newest label of each source, counting or not."""


@dataclass(frozen=True, slots=True)
class Given:
    """The labels of one source on served calls, and the sum of their values."""

    kind: LabelKind
    source: str
    labelled: int
    total: float
    counting: int

    @property
    def rate(self) -> float:
        """The mean of its labels."""
        return self.total / self.labelled

    @property
    def interval(self) -> Interval:
        """The 95 % interval of that mean."""
        found = interval_of(self.rate, self.labelled)
        assert found is not None  # it has given labels
        return found


Sources = tuple[Given, ...]
"""The sources of one service level."""


async def sources(connection: AsyncConnection, start: Start) -> dict[Key, Sources]:
    """Read the sources over the requests of a window; the strongest kind first."""
    counted = _on_served(labels, func.count(), by=(labels.c.source,)).where(labels.c.counts)
    counting = {tuple(row[:3]): row[3] for row in await _ask(connection, counted, start)}
    return _by_level(
        (*row, counting.get((row.zoo, row.service_level, row.source), 0))
        for row in await _ask(connection, _given(), start)
    )


async def all_sources(connection: AsyncConnection) -> dict[Key, Sources]:
    """Read the sources over all requests, from the sums; the strongest kind first."""
    of = LABELS.c
    each = (of.zoo, of.service_level, of.kind, of.source)
    labelled = func.sum(of.labelled)
    sums = (of.satisfaction, of.counting)
    query = select(*each, labelled, *map(func.sum, sums)).group_by(*each).having(labelled > 0)
    return _by_level(await connection.execute(query))


def _by_level(rows: Iterable[Iterable[Any]]) -> dict[Key, Sources]:
    """Group the labels of the sources by service level, the strongest kind first."""
    found: dict[Key, list[Given]] = {}
    for zoo, level, kind, *figures in rows:
        found.setdefault((zoo, level), []).append(Given(LabelKind(kind), *figures))
    return {key: tuple(sorted(given, key=_order)) for key, given in found.items()}


def _order(given: Given) -> tuple[int, str]:
    return PRECEDENCE.index(given.kind), given.source


async def _ask(connection: AsyncConnection, query: Select[Any], start: Start) -> Any:
    return await connection.execute(within(query, requests.c.request_id, start))


def _given() -> Select[Any]:
    found = CURRENT.c
    sums = (func.count(), func.sum(found.value))
    return _on_served(CURRENT, *sums, by=(found.kind, found.source))


def _on_served(given: Any, *figures: Any, by: tuple[Any, ...]) -> Select[Any]:
    """Query figures over the labels on served calls, by zoo, service level and the columns
    named."""
    each = (requests.c.zoo, requests.c.service_level, *by)
    is_served = given.c.call_id == served_call(requests)
    return select(*each, *figures).select_from(requests).join(given, is_served).group_by(*each)


# The gradings of the judges, their cost, and whether they agree with the users.

JudgeKey = tuple[str, str]
"""Zoo and judge."""


@dataclass(frozen=True, slots=True)
class Grading:
    """The work of one judge for one zoo. ``weight`` is that of its newest label; ``is_left_out`` if
    the rule of the zoo does not name judges."""

    gradings: int
    graded: int
    cost: float | None
    without_cost: int
    weight: float | None
    is_left_out: bool
    agreement: Agreement
    position: PositionBias = field(default_factory=PositionBias)

    @property
    def counts(self) -> bool | None:
        """Whether its labels count; None before the first."""
        return None if self.weight is None else self.weight > 0.0 and not self.is_left_out


async def judging(connection: AsyncConnection) -> dict[JudgeKey, Grading]:
    """Read gradings by zoo and judge, over the whole time, from the sums; the agreement, over the
    judge's newest calls."""
    weights = await _newest_weights(connection)
    agreed = await agreements(connection)
    preferred = await preferences(connection)
    left_out = await _left_out(connection)
    found, each = CALLS.c, (CALLS.c.zoo, CALLS.c.model)
    sums = (found.calls, found.failures, found.cost, found.calls_without_cost)
    query = select(*each, *map(func.sum, sums)).where(found.role == JUDGING).group_by(*each)
    return {
        (key := (zoo, judge)): Grading(
            *(total, total - failures, cost if total > unstated else None, unstated),
            weights.get(key),
            zoo in left_out,
            agreed.get(key, Agreement()),
            preferred.get(key, PositionBias()),
        )
        for zoo, judge, total, failures, cost, unstated in await connection.execute(query)
    }


async def _newest_weights(connection: AsyncConnection) -> dict[JudgeKey, float]:
    """Read the weights of the labels of each judge's newest grading with a valid reply, if it is
    among the newest gradings of all."""
    graded = newest_gradings(gradings.c.status == "graded")
    newest = (
        select(requests.c.zoo, graded.c.judge, func.max(graded.c.position).label("position"))
        .join_from(graded, requests, requests.c.request_id == graded.c.request_id)
        .group_by(requests.c.zoo, graded.c.judge)
        .subquery()
    )
    query = (
        select(newest.c.zoo, newest.c.judge, labels.c.weight)
        .join_from(newest, gradings, gradings.c.position == newest.c.position)
        .join(labels, labels.c.request_id == gradings.c.request_id)
        .where(labels.c.kind == "judge")
        .order_by(labels.c.position)
    )
    return {(zoo, judge): weight for zoo, judge, weight in await connection.execute(query)}


async def _left_out(connection: AsyncConnection) -> set[str]:
    """Find the zoos whose rule does not count labels of judges."""
    rules = (await connection.execute(select(log_head.c.precedence))).scalar_one()
    return {zoo for zoo, kinds in rules.items() if LabelKind.JUDGE not in kinds}


def note(found: Grading, least: float | None) -> str:
    """Say whether the judge counts, and why; ``least`` is the kappa below which it stops counting,
    if that is known."""
    if found.weight is None:
        return "has graded nothing yet"
    if found.is_left_out:
        return "does not count: judges are left out of the precedence"
    kappa = found.agreement.kappa
    is_agreed = least is None or found.agreement.may_be(least)
    if found.weight == 0.0 and is_agreed and not found.position.may_be_within(0.0):
        return f"does not count: it prefers the answer shown first by {found.position}"
    if found.weight == 0.0:
        shown = "unknown" if kappa is None else f"{kappa:.2f}"
        below = "too low" if least is None else f"below {least:g}"
        return f"does not count: agreement {shown} {below}"
    if kappa is None or not found.agreement.is_enough:
        both = found.agreement.calls
        return f"counts: agreement unknown, {both} of {ENOUGH} calls that users judged too"
    return f"counts: agreement {kappa:.2f}"
