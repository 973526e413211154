"""Queries of the log for the certificate: counts of requests, and counts by their labels.

The number of requests comes from the sums by day, and what was expected of them from the log.
Labelled requests are read along the index of the labels' times, in groups of requests with the same
labels: values to the hundredth, expectations to the tenth, probabilities to the ten-thousandth.
Runs alike on SQLite and Postgres, and the page shows the very statements.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
from sqlalchemy import (
    Column,
    ColumnElement,
    Float,
    MetaData,
    Select,
    String,
    Table,
    and_,
    case,
    func,
    or_,
    select,
    true,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.certificate.evidence import LabelGroup
from litellm_messplus.figures.tally import Group, Tally, tallies
from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.runtime.vocabulary import BEFORE_SUFFIX, LabelKind, is_before
from litellm_messplus.status.reading import is_since, window_start
from litellm_messplus.store.hours import REQUESTS
from litellm_messplus.store.tables import (
    calls,
    labels,
    log_head,
    outcomes,
    requests,
    served_call,
)

CURRENT = Table(
    "current_labels",
    MetaData(),
    *(Column(name, String) for name in ("label_id", "call_id", "kind")),
    Column("value", Float),
)
"""The view, with the columns read here."""
WORDS = (LabelKind.FEEDBACK.value, LabelKind.CHECK.value)
"""Kinds of labels taken as the truth. A user's next turn is a weak signal, and no word."""
JUDGE = LabelKind.JUDGE.value
IS_FAILED = or_(outcomes.c.failure.is_not(None), outcomes.c.status.is_(None))
"""Requests without an answer: those that failed, and those under way."""
COUNTS = ~outcomes.c.service_level.endswith(BEFORE_SUFFIX)
"""Requests that count towards a promise: those served as before do not."""
BY_PROMPT = case((calls.c.candidate == requests.c.chosen, requests.c.expected_satisfaction))
TENTHS = func.round(10 * func.coalesce(calls.c.answer_said, BY_PROMPT, outcomes.c.alpha))
"""Tenths of satisfaction expected of the call that answered, before its label: by its answer where
that was read, else by its prompt; the promised share if another model than the chosen one answered.
Whole numbers are added exactly, in any order."""


class NoCertificateError(MessplusError):
    """The lack of anything to certify; the message has the reason, and what to do."""


@dataclass(frozen=True, slots=True)
class Span:
    """Requests decided from the beginning of a day, UTC, until a moment."""

    since: date
    until: datetime

    @property
    def start(self) -> datetime:
        """The first moment of the first day."""
        return datetime.combine(self.since, time.min, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Counted:
    """The answered ``requests`` of one service level, how many were ``expected`` to be satisfied,
    the share promised to them, and their labels. Others ``failed``."""

    requests: int
    expected: float
    alpha: float
    groups: list[LabelGroup] = field(default_factory=list)
    failed: int = 0


async def span_of(
    connection: AsyncConnection, zoo: str, since: date | None, until: datetime
) -> Span:
    """Find the days that a certificate can cover: all in the log, unless fewer are requested.

    Raises NoCertificateError if the log has none, or not all of the requested ones.
    """
    pruned: int = (await connection.execute(select(log_head.c.start))).scalar_one()
    oldest = select(func.min(requests.c.created_at)).where(
        requests.c.zoo == zoo, requests.c.position > pruned
    )
    first: datetime | None = (await connection.execute(oldest)).scalar_one()
    if first is None:
        raise NoCertificateError(f"ZOO: given '{zoo}'; {await _known(connection)}")
    # The day on which pruning stopped has lost some of its requests, which the sums still count.
    begin = first.date() + timedelta(days=1) if pruned > 0 else first.date()
    if since is not None and since < begin and pruned > 0:
        raise NoCertificateError(
            f"--since: given {since}; allowed: {begin} or later, as older requests are pruned"
        )
    found = Span(begin if since is None else since, until)
    if found.start >= until:
        raise NoCertificateError(
            f"no request is in the log from {found.since} until {until:%Y-%m-%d %H:%M} UTC: give "
            "an earlier --since, or a shorter --wait"
        )
    return found


async def _known(connection: AsyncConnection) -> str:
    found = select(REQUESTS.c.zoo).distinct().order_by(REQUESTS.c.zoo)
    names = ", ".join((await connection.execute(found)).scalars()) or "none yet"
    return f"allowed: a zoo with requests in the log ({names})"


async def counted_since(connection: AsyncConnection, zoo: str, span: Span) -> dict[str, Counted]:
    """Read a span, by service level; levels without a request are left out."""
    last, of = span.until.date(), REQUESTS.c
    is_in = and_(of.zoo == zoo, of.day >= span.since, of.day < last)
    found = await tallies(connection, "service_level", source=REQUESTS, where=is_in)
    # The last day may be only partly in the span, so it is read from the outcomes.
    for level, tally in (await _of_requests(connection, _of_last_day(zoo, span))).items():
        found[level] = found.get(level, Tally()) + tally
    return await _counted(connection, found, labelled_since(zoo, span), expected_since(zoo, span))


async def counted_last(
    connection: AsyncConnection, zoo: str, window: int, whole: Mapping[str, Counted]
) -> dict[str, Counted]:
    """Read the newest ``window`` requests of each service level in ``whole``."""
    starts = {
        (name, level): start
        for (name, level), start in (await window_start(connection, window)).items()
        if name == zoo and level in whole
    }
    is_own = is_since(starts)
    found = await _of_requests(connection, select(requests.c.request_id).where(is_own))
    groups = _counts(labels.c.position >= min(starts.values(), default=0), is_own)
    expected = _expected(requests.c.zoo == zoo, is_own)
    return await _counted(connection, found, groups, expected)


async def _of_requests(connection: AsyncConnection, ids: Select[Any]) -> dict[Group, Tally]:
    """Add up the outcomes of these requests, by service level."""
    is_own = outcomes.c.request_id.in_(ids)
    return await tallies(connection, "service_level", source=outcomes, where=is_own)


async def _counted(
    connection: AsyncConnection,
    found: Mapping[Group, Tally],
    groups_query: Select[Any],
    expected_query: Select[Any],
) -> dict[str, Counted]:
    """Read the labels of the requests that were added up, what was expected, and what failed."""
    groups = await _groups(connection, groups_query)
    read = {row.service_level: row for row in await connection.execute(expected_query)}
    counted = {}
    for (level,), tally in sorted(found.items()):
        _, failed, expected = read.get(level, (level, 0, None))
        answered = tally.requests - failed
        if answered > 0 and not is_before(level):
            own = groups.get(level, [])
            figures = answered, expected or 0.0, tally.alpha or 0.0
            counted[level] = Counted(*figures, own, failed)
    return counted


def expected_since(zoo: str, span: Span) -> Select[Any]:
    """Sum what was expected of the requests of a span."""
    request = requests.c
    return _expected(
        request.zoo == zoo, request.created_at >= span.start, request.created_at < span.until
    )


def _expected(*where: ColumnElement[bool]) -> Select[Any]:
    """Count the failed requests under these conditions by service level, and sum what was expected
    of the others."""
    return (
        select(
            outcomes.c.service_level,
            func.count().filter(IS_FAILED).label("failed"),
            (func.sum(TENTHS).filter(~IS_FAILED) / 10.0).label("expected"),
        )
        .join(requests, requests.c.request_id == outcomes.c.request_id)
        .outerjoin(calls, calls.c.call_id == served_call(requests))
        .where(COUNTS, *where)
        .group_by(outcomes.c.service_level)
    )


def _of_last_day(zoo: str, span: Span) -> Select[Any]:
    """Select the requests of the last day until its end."""
    request = requests.c
    begin = max(datetime.combine(span.until.date(), time.min, tzinfo=UTC), span.start)
    return select(request.request_id).where(
        request.zoo == zoo, request.created_at >= begin, request.created_at < span.until
    )


async def _groups(connection: AsyncConnection, query: Select[Any]) -> dict[str, list[LabelGroup]]:
    found: dict[str, list[LabelGroup]] = {}
    for row in await connection.execute(query):
        count = np.array([float(row.requests)])
        group = LabelGroup(count, row.word, row.grade, row.expected, row.weight, row.probability)
        found.setdefault(row.service_level, []).append(group)
    return found


def labelled_since(zoo: str, span: Span) -> Select[Any]:
    """Count the requests of a span by their labels: a label is not older than its request."""
    request = requests.c
    return _counts(
        labels.c.created_at >= span.start,
        request.zoo == zoo,
        request.created_at >= span.start,
        request.created_at < span.until,
    )


def _counts(*where: ColumnElement[bool]) -> Select[Any]:
    """Count the labelled requests under these conditions by the labels of the served call and what
    was expected of it: the word that counts, if any, and the judge's grade, if any; none of a
    failed one."""
    labelled = (
        select(
            requests.c.service_level,
            labels.c.call_id,
            IS_FAILED.label("is_failed"),
            (TENTHS / 10.0).label("expected"),
        )
        .join(requests, requests.c.request_id == labels.c.request_id)
        .join(outcomes, outcomes.c.request_id == labels.c.request_id)
        .outerjoin(calls, calls.c.call_id == labels.c.call_id)
        .where(labels.c.call_id == served_call(requests), COUNTS, *where)
        .distinct()
        .cte("told")
    )
    verdict, grade = labels.alias("verdict"), CURRENT.alias("grade")
    bought = labels.alias("bought")
    is_word = and_(verdict.c.kind.in_(WORDS), ~labelled.c.is_failed)
    is_grade = (grade.c.kind == JUDGE, labelled.c.is_failed.is_not(true()))
    keys = (
        labelled.c.service_level,
        case((is_word, func.round(verdict.c.value * 100) / 100.0)).label("word"),
        (func.round(grade.c.value * 100) / 100.0).label("grade"),
        labelled.c.expected,
        case((is_word, func.round(verdict.c.weight * 100) / 100.0), else_=1.0).label("weight"),
        (func.round(bought.c.probability * 10_000) / 10_000.0).label("probability"),
    )
    groups = (
        select(*keys)
        .select_from(labelled)
        .outerjoin(verdict, and_(verdict.c.call_id == labelled.c.call_id, verdict.c.counts))
        .outerjoin(grade, and_(grade.c.call_id == labelled.c.call_id, *is_grade))
        .outerjoin(bought, bought.c.label_id == func.coalesce(grade.c.label_id, verdict.c.label_id))
        .where(or_(is_word, grade.c.value.is_not(None)))
        .subquery("said")
    )
    in_order = (each.nulls_first() for each in groups.c)
    return select(*groups.c, func.count().label("requests")).group_by(*groups.c).order_by(*in_order)
