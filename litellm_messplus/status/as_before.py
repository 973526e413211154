"""Traffic now, and the newest requests that were served as before: those of a watched zoo, and the
rest of a canary. What a switch is decided by stands beside the forecast of routing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.shown import LEVEL, described
from litellm_messplus.figures.tally import Tally, tallies
from litellm_messplus.figures.words import UNKNOWN, figure, percent, percent_around
from litellm_messplus.store.sum_tables import hourly_request_sums
from litellm_messplus.vocabulary import level_before

HOUR = timedelta(hours=1)


@described(LEVEL, "as_before.")
@dataclass(frozen=True, slots=True)
class AsBefore:
    """The newest requests of a service level that were served as before."""

    requests: int
    requests_per_hour: float
    answered_share: float | None
    judged: int
    rate: float | None
    low: float | None
    high: float | None
    cost_per_request: float | None


async def read_traffic(connection: AsyncConnection, now: datetime) -> dict[tuple[str, str], float]:
    """Read the requests an hour of each stream, since the beginning of the hour before this one."""
    begin = now.replace(minute=0, second=0, microsecond=0) - HOUR
    sums = hourly_request_sums.c
    is_recent = sums.day.in_({begin.date(), now.date()})
    by = ("zoo", "service_level", "day", "hour")
    found: dict[tuple[str, str], float] = {}
    for (zoo, level, day, hour), tally in (
        await tallies(connection, *by, source=hourly_request_sums, where=is_recent)
    ).items():
        if (day, hour) >= (begin.date(), begin.hour):
            found[zoo, level] = found.get((zoo, level), 0.0) + tally.requests
    return {key: count * (HOUR / (now - begin)) for key, count in found.items()}


def as_before(
    key: tuple[str, str],
    last: Mapping[tuple[str, str], Tally],
    traffic: Mapping[tuple[str, str], float],
) -> AsBefore | None:
    """Say what the requests beside a promise came to; None where none was served as before."""
    beside = key[0], level_before(key[1])
    tally = last.get(beside)
    if tally is None:
        return None
    interval = tally.interval
    return AsBefore(
        requests=tally.requests,
        requests_per_hour=traffic.get(beside, 0.0),
        answered_share=tally.share_answered,
        judged=tally.judged,
        rate=tally.rate,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        cost_per_request=tally.seen_cost_per_request,
    )


def before_line(whose: str, found: AsBefore, unit: str | None) -> str:
    """Write it as one line."""
    rate = "none judged"
    if found.rate is not None:
        around = percent_around(found.rate, found.low, found.high)
        rate = f"{around} of {found.judged} judged satisfied"
    cost = UNKNOWN if found.cost_per_request is None else figure(found.cost_per_request, unit)
    return (
        f"{whose}, served as before, the newest {found.requests} requests: "
        f"{found.requests_per_hour:.3g} an hour now, {percent(found.answered_share)} answered, "
        f"{rate}, {cost} a request"
    )
