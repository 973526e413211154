"""What each source of labels says, source by source, and what of it counts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, column, func, select, table
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.label_kind import PRECEDENCE, LabelKind
from litellm_messplus.status.interval import is_thin
from litellm_messplus.status.label_report import Labels, SourceRate
from litellm_messplus.status.queries import VERDICTS, Key, Start, Totals, within
from litellm_messplus.status.windows import interval_of, share
from litellm_messplus.store.tables import requests

CURRENT = table("current_labels", *map(column, ("call_id", "kind", "source", "value")))
"""The view, as far as it is read here: of each source its newest label, counting or not."""


@dataclass(frozen=True, slots=True)
class Given:
    """The labels of one source on served calls, and the sums of their values and squares."""

    kind: LabelKind
    source: str
    labelled: int
    total: float
    squares: float
    counting: int

    @property
    def mean(self) -> float:
        """Of its labels."""
        return self.total / self.labelled

    @property
    def mean_square(self) -> float:
        """Of its labels."""
        return self.squares / self.labelled


Sources = tuple[Given, ...]
"""Of one service level."""


async def sources(connection: AsyncConnection, start: Start) -> dict[Key, Sources]:
    """Over the requests of a window; the strongest kind first."""
    counting = {tuple(row[:3]): row[3] for row in await _ask(connection, _counting(), start)}
    found: dict[Key, list[Given]] = {}
    for zoo, level, kind, source, count, total, squares in await _ask(connection, _given(), start):
        counted = counting.get((zoo, level, source), 0)
        given = Given(LabelKind(kind), source, count, total, squares, counted)
        found.setdefault((zoo, level), []).append(given)
    return {key: by_strength(given) for key, given in found.items()}


def by_strength(given: Iterable[Given]) -> Sources:
    """The strongest kind first."""
    return tuple(sorted(given, key=_order))


def labels_of(found: Sources, totals: Totals | None) -> Labels:
    """For the report."""
    labelled, requests = (totals.labelled, totals.requests) if totals else (0, 0)
    return Labels(labelled, share(labelled, requests), tuple(map(_rate, found)))


def _rate(given: Given) -> SourceRate:
    interval = interval_of(given.mean, given.labelled)
    assert interval is not None  # it has given labels
    return SourceRate(
        given.kind, given.source, given.labelled, given.mean, interval.low, interval.high,
        given.counting, is_thin(interval, given.labelled),
    )  # fmt: skip


def _order(given: Given) -> tuple[int, str]:
    return PRECEDENCE.index(given.kind), given.source


async def _ask(connection: AsyncConnection, query: Select[Any], start: Start) -> Any:
    return await connection.execute(within(query, requests.c.request_id, start))


def _given() -> Select[Any]:
    found = CURRENT.c
    sums = (func.count(), func.sum(found.value), func.sum(found.value * found.value))
    return _on_served(CURRENT, *sums, by=(found.kind, found.source))


def _counting() -> Select[Any]:
    return _on_served(VERDICTS, func.count(), by=(VERDICTS.c.source,))


def _on_served(given: Any, *figures: Any, by: tuple[Any, ...]) -> Select[Any]:
    """Figures over the labels on served calls, by zoo, service level and what else is named."""
    each = (requests.c.zoo, requests.c.service_level, *by)
    is_served = given.c.call_id == requests.c.request_id + ".0"
    return select(*each, *figures).select_from(requests).join(given, is_served).group_by(*each)
