"""Queries of the log for the status, by zoo and service level; their SQL is in
`docs/evidence/status.md`.

Every query of the log goes back a bounded way along an index, from the newest position of each
service level, however long the log is. The levels, and the totals of all requests, come from the
sums. Runs alike on SQLite and Postgres."""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, case, false, func, null, or_, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.tally import Tally, tallies
from litellm_messplus.runtime.vocabulary import SERVING, CallRole, Failure
from litellm_messplus.status.calibration import JudgedCall
from litellm_messplus.store.hours import REQUESTS
from litellm_messplus.store.tables import calls, labels, outcomes, requests

# Queries of the calibration: the newest judged calls, and their predictions.

JUDGED_CALLS = 5_000
"""The newest judged calls, of all zoos together, that the calibration covers."""
WARM_UP = 1_000
"""Judged calls before those: the running means start from them, as the predictor did."""
AT_ONCE = 50
"""Rows between two turns of the event loop, which serves requests meanwhile."""


async def judged_calls(
    connection: AsyncConnection, count: int = JUDGED_CALLS, warm_up: int = WARM_UP
) -> AsyncIterator[JudgedCall]:
    """Yield the newest judged calls, in the order of their decisions; those of the warm-up
    unscored.

    Reads ``count`` + ``warm_up`` calls at the most, however long the log is.
    """
    verdict = _verdicts().limit(count + warm_up).subquery("verdict")
    oldest_left_out = _verdicts().with_only_columns(labels.c.position).offset(count).limit(1)
    scored_after = func.coalesce(oldest_left_out.scalar_subquery(), 0)
    query = (
        select(
            requests.c.zoo,
            calls.c.candidate,
            requests.c.position,
            calls.c.position.label("ended_at"),
            verdict.c.position.label("judged_at"),
            requests.c.estimated_satisfaction,
            verdict.c.value,
            verdict.c.weight,
            (verdict.c.position > scored_after).label("is_scored"),
        )
        .select_from(verdict)
        .join(calls, calls.c.call_id == verdict.c.call_id)
        .join(requests, requests.c.request_id == calls.c.request_id)
        .where(
            calls.c.status == "success",
            calls.c.candidate.is_not(None),
            calls.c.is_cache_hit.is_(False),  # each answer was learned from once
        )
        .order_by(requests.c.position, calls.c.position)
    )
    found = await connection.stream(query, execution_options={"yield_per": AT_ONCE})
    async for rows in found.partitions():
        for row in rows:
            predicted = row.estimated_satisfaction.get(row.candidate)
            if predicted is not None:
                known_at = max(row.ended_at, row.judged_at)
                yield JudgedCall(
                    row.zoo, row.candidate, row.position, known_at, predicted, row.value,
                    row.weight, bool(row.is_scored),
                )  # fmt: skip


def _verdicts() -> Select[Any]:
    """Query the label that counts of each call, the newest first, along the index of positions."""
    columns = labels.c.call_id, labels.c.position, labels.c.value, labels.c.weight
    return select(*columns).where(labels.c.counts).order_by(labels.c.position.desc())


RECENT_DECISIONS = 20
"""Decisions, probes left out, of which most must report it: a single one may waver."""

Key = tuple[str, str]
"""Zoo and service level."""
Start = Mapping[Key, int]
"""The position of each service level's first request in a window."""


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest request."""

    alpha: float
    queue: float
    price: float | None
    largest: str


async def totals(connection: AsyncConnection, start: Start | None = None) -> dict[Key, Tally]:
    """Add up the requests of a window from their outcomes; without a window all requests, from the
    sums, which include those that have left the log."""
    level = ("zoo", "service_level")
    if start is None:
        found = await tallies(connection, *level, source=REQUESTS)
    else:
        newest = outcomes.c.request_id.in_(select(requests.c.request_id).where(is_since(start)))
        found = await tallies(connection, *level, source=outcomes, where=newest)
    return {(zoo, name): tally for (zoo, name), tally in found.items()}


LONG_AGO = 10_000
"""Positions of the log to look back."""


async def newest(connection: AsyncConnection) -> dict[Key, Newest]:
    """Read the newest request of every service level; its largest is that of the newest request
    that all candidates could take, if that is recent."""
    request, levels = requests.c, _levels()
    last = (
        select(func.max(request.position))
        .where(request.zoo == levels.c.zoo, request.service_level == levels.c.service_level)
        .correlate(levels)
        .scalar_subquery()
    )
    usual = requests.alias("usual")
    free = (
        select(func.max(usual.c.position))
        .where(
            *(usual.c.zoo == levels.c.zoo, usual.c.service_level == levels.c.service_level),
            *(usual.c.eligible.is_(null()), usual.c.position > last - LONG_AGO),
        )
        .correlate(levels)
        .scalar_subquery()
    )
    shown = requests.alias("shown")
    query = (
        select(
            *(request.zoo, request.service_level, request.alpha, request.queue, request.price),
            shown.c.largest,
        )
        .join_from(levels, requests, request.position == last)
        .join(shown, shown.c.position == func.coalesce(free, last))
    )
    return {
        (row.zoo, row.service_level): Newest(row.alpha, row.queue, row.price, row.largest)
        for row in await connection.execute(query)
    }


async def window_start(connection: AsyncConnection, window: int) -> Start:
    """Find the first position of the newest ``window`` requests of each service level."""
    return await _start(connection, window, true())


async def out_of_reach(connection: AsyncConnection) -> set[Key]:
    """Find the service levels for which most of the newest decisions report alpha as out of
    reach."""
    start = await _start(connection, RECENT_DECISIONS, ~requests.c.is_exploration)
    query = (
        select(requests.c.zoo, requests.c.service_level)
        .where(~requests.c.is_exploration, is_since(start))
        .group_by(requests.c.zoo, requests.c.service_level)
        .having(2 * func.count(case((~requests.c.is_within_reach, 1))) > func.count())
    )
    return {(row[0], row[1]) for row in await connection.execute(query)}


async def _start(connection: AsyncConnection, count: int, of: ColumnElement[bool]) -> Start:
    """Find the position of the ``count``-th newest of such requests of each service level; 0 if
    there are fewer."""
    levels = _levels()
    first = (
        select(requests.c.position)
        .where(
            requests.c.zoo == levels.c.zoo, requests.c.service_level == levels.c.service_level, of
        )
        .order_by(requests.c.position.desc())
        .limit(1)
        .offset(count - 1)
        .correlate(levels)
        .scalar_subquery()
    )
    query = select(levels.c.zoo, levels.c.service_level, func.coalesce(first, 0))
    return {(row[0], row[1]): row[2] for row in await connection.execute(query)}


def _levels() -> Subquery:
    """Query every service level that ever had a request."""
    found = REQUESTS.c
    return select(found.zoo, found.service_level).distinct().subquery("levels")


def within(query: Select[Any], request_id: Any, start: Start) -> Select[Any]:
    """Narrow the query to the requests of a window."""
    return query.where(request_id.in_(select(requests.c.request_id).where(is_since(start))))


def is_since(start: Start) -> ColumnElement[bool]:
    """Tell whether a request is in the window of its service level, each looked up by an index."""
    request = requests.c
    each = (
        (request.zoo == zoo) & (request.service_level == level) & (request.position >= position)
        for (zoo, level), position in start.items()
    )
    return or_(false(), *each)


# Traffic now, and how much of it fails.

MINUTES = 5
"""Minutes back from now that are "now": an outage is reported while it lasts."""
NEWEST_CALLS = 5_000
"""Most calls that are read: the status takes the same time on any log."""
NOT_CHOSEN = "served_not_chosen"
FEWEST = 20
"""Least number of requests for an alert: of fewer, one failure would be much."""
MOST = 0.05
"""The share of failed requests above which an alert is raised."""
WELL = 50
"""Requests in a row without a failure after which it is over."""
MOST_NOT_CHOSEN = 0.03
"""The share of requests from which on LiteLLM does not follow the router: with a shuffle among two
it is a half, and nothing else is known to cause any."""


@dataclass(frozen=True, slots=True)
class Recent:
    """Requests that ended within the last minutes, their rate ``per_hour``, how many of them ended
    without an answer, by who failed, how many another served than the router left, and how many
    came after the zoo's last failure."""

    ended: int = 0
    failures: Counter[Failure] = field(default_factory=Counter)
    per_hour: float = 0.0
    not_chosen: int = 0
    since_failure: int = 0

    def __add__(self, other: "Recent") -> "Recent":
        return Recent(
            self.ended + other.ended,
            self.failures + other.failures,
            self.per_hour + other.per_hour,
            self.not_chosen + other.not_chosen,
            self.since_failure + other.since_failure,
        )

    @property
    def failed(self) -> int:
        """The number of requests that failed for no fault of the client's."""
        return sum(self.failures[each] for each in SERVING)

    @property
    def is_followed(self) -> bool:
        """Whether LiteLLM serves what the router leaves to it."""
        return not self.not_chosen or self.not_chosen < MOST_NOT_CHOSEN * self.ended

    @property
    def is_failing(self) -> bool:
        """Whether so many fail that an operator must look."""
        is_much = self.failed > MOST * self.ended
        return self.ended >= FEWEST and is_much and self.since_failure < WELL


Endpoint = tuple[str, str, str, int]
"""A zoo, a candidate, LiteLLM's id of its deployment, and how many calls that failed in a row."""
FEWEST_IN_A_ROW = 3
"""Least number of calls that an endpoint failed in a row for an alert."""


async def failing_endpoints(connection: AsyncConnection, now: datetime) -> list[Endpoint]:
    """Read the deployments that failed each of their last calls, within the last minutes."""
    call, begin = calls.c, now - timedelta(minutes=MINUTES)
    answered = func.max(case((call.failure.is_(None), call.position)))
    newest = (
        select(*(call.request_id, call.position, call.candidate, call.deployment_id, call.failure))
        .add_columns(answered.over(partition_by=call.deployment_id).label("answered"))
        .where(call.role == CallRole.SERVED, call.ended_at >= begin)
        .where(call.position > select(func.max(call.position)).scalar_subquery() - NEWEST_CALLS)
        .subquery()
    )
    whose = requests.c.zoo, newest.c.candidate, newest.c.deployment_id
    query = (
        select(*whose, func.count())
        .join(requests, requests.c.request_id == newest.c.request_id)
        .where(newest.c.failure == Failure.UPSTREAM, newest.c.deployment_id.is_not(None))
        .where(newest.c.position > func.coalesce(newest.c.answered, 0))
        .group_by(*whose)
        .having(func.count() >= FEWEST_IN_A_ROW)
        .order_by(*whose)
    )
    return [(zoo, name, each, n) for zoo, name, each, n in await connection.execute(query)]


async def recent_requests(
    connection: AsyncConnection, now: datetime, most: int = NEWEST_CALLS
) -> dict[Key, Recent]:
    """Read recent requests by stream, including those served as before, along the index of
    positions. If ``most`` calls do not reach as far back, the rate is over the time they cover."""
    named = "request_id", "position", "ended_at", "role", "failure", NOT_CHOSEN
    newest = (
        select(*(calls.c[name] for name in named))
        .order_by(calls.c.position.desc())
        .limit(most)
        .subquery()
    )
    begin = now - timedelta(minutes=MINUTES)
    read = await connection.execute(select(func.count(), func.min(newest.c.ended_at)))
    count, oldest = read.one()
    covered = now - (max(begin, oldest) if count == most else begin)
    per_hour = timedelta(hours=1) / max(covered, timedelta(seconds=1))
    failed = func.max(case((newest.c.failure.in_(SERVING), newest.c.position)))
    served = (
        select(requests.c.zoo, requests.c.service_level, newest)
        .add_columns(failed.over(partition_by=requests.c.zoo).label("failed"))
        .join(requests, requests.c.request_id == newest.c.request_id)
        .where(newest.c.role == CallRole.SERVED, newest.c.ended_at >= begin)
        .subquery()
    )
    call, grouped = served.c, (served.c.zoo, served.c.service_level, served.c.failure)
    is_since_failure = call.position > func.coalesce(call.failed, 0)
    counted = func.count(case((call[NOT_CHOSEN], 1))), func.count(case((is_since_failure, 1)))
    query = select(*grouped, func.count(), *counted).group_by(*grouped)
    found: dict[Key, Recent] = defaultdict(Recent)
    for zoo, level, failure, ended, *others in await connection.execute(query):
        failures = Counter({Failure(failure): ended}) if failure else Counter[Failure]()
        found[zoo, level] += Recent(ended, failures, ended * per_hour, *others)
    return found
