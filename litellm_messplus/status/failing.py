"""Requests that got no answer within the last minutes, by zoo, and who failed them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.words import percent
from litellm_messplus.status.alerts import Alert, AlertKind
from litellm_messplus.store.tables import calls, requests
from litellm_messplus.vocabulary import SERVING, CallRole, Failure

MINUTES = 5
"""How far back is looked: an outage is told of while it lasts."""
NEWEST = 5_000
"""Calls that are read at most: the status takes the same time on any log."""
FEWEST = 20
"""Requests of which an alert can be raised: of fewer, one failure would be much."""
MOST = 0.05
"""Share of failed ones beyond which it is."""


@dataclass(frozen=True, slots=True)
class RecentRequests:
    """The requests of one zoo that ended within the last minutes, those served as before too; and
    how many of them ended without an answer, by who failed."""

    ended: int
    failures: Mapping[Failure, int]

    @property
    def failed(self) -> int:
        """Count those that failed for no fault of the client's."""
        return sum(self.failures.get(each, 0) for each in SERVING)

    @property
    def is_failing(self) -> bool:
        """Whether so many fail that somebody must look."""
        return self.ended >= FEWEST and self.failed > MOST * self.ended


async def recent_requests(connection: AsyncConnection, now: datetime) -> dict[str, RecentRequests]:
    """Read them, by zoo: back along the index of positions."""
    newest = (
        select(calls.c.request_id, calls.c.ended_at, calls.c.role, calls.c.failure)
        .order_by(calls.c.position.desc())
        .limit(NEWEST)
        .subquery()
    )
    query = (
        select(requests.c.zoo, newest.c.failure, func.count())
        .join(requests, requests.c.request_id == newest.c.request_id)
        .where(
            newest.c.role == CallRole.SERVED,
            newest.c.ended_at >= now - timedelta(minutes=MINUTES),
        )
        .group_by(requests.c.zoo, newest.c.failure)
    )
    counts: dict[str, dict[str | None, int]] = defaultdict(dict)
    for zoo, failure, count in await connection.execute(query):
        counts[zoo][failure] = count
    return {
        zoo: RecentRequests(
            sum(each.values()),
            {Failure(failure): count for failure, count in each.items() if failure is not None},
        )
        for zoo, each in counts.items()
    }


def failing_alerts(recent: Mapping[str, RecentRequests], zoos: Sequence[str]) -> Iterator[Alert]:
    """Name the zoos that fail more than a few of their requests now."""
    for zoo in zoos:
        found = recent.get(zoo)
        if found is not None and found.is_failing:
            by = ", ".join(
                f"{each.value.replace('_', ' ')} {found.failures[each]}"
                for each in SERVING
                if each in found.failures
            )
            message = (
                f"{found.failed} of the {found.ended} requests of the last {MINUTES} minutes "
                f"failed ({percent(found.failed / found.ended)}): {by}"
            )
            yield Alert(AlertKind.FAILING, message, zoo)
