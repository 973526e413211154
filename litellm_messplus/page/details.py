"""The tables of the screen of details: which models served, where labels are from, who spent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.figure import Plain, rows
from litellm_messplus.figures.templates import tables
from litellm_messplus.page.charts import Span, newest_outcomes
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus, level_before
from litellm_messplus.status.figures import JUDGE
from litellm_messplus.status.render import tables_of
from litellm_messplus.store.hours import CALLS
from litellm_messplus.store.tables import JUDGING, calls, outcomes, requests

SPENT_OF = 5_000
"""The newest requests of a promise whose spend is shown."""
SPENDERS = 20
"""Most pairs of a key and a team that are shown, those that spent most."""
MEDIAN, MOST = 0.5, 0.95


@dataclass(slots=True)
class Use:
    """What a model did in a span, both for users and unseen; its seconds are of the newest
    answers, None without any."""

    calls: int = 0
    failures: int = 0
    unseen: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    median_seconds: float | None = None
    p95_seconds: float | None = None


async def read_uses(
    connection: AsyncConnection, zoo: str, level: str, span: Span
) -> dict[str, Use]:
    """Read what each model did, however requests were served, by name; the name is empty outside of
    the zoo."""
    of, streams = CALLS.c, (level, level_before(level))
    amounts = of.calls, of.failures, of.prompt_tokens, of.completion_tokens, of.cost
    query = (
        select(of.candidate, of.role, *(func.sum(each) for each in amounts))
        .where(of.day.in_(span.days), of.zoo == zoo, of.service_level.in_(streams))
        .where(of.role != JUDGING)
        .group_by(of.candidate, of.role)
        .order_by(of.candidate)
    )
    found: dict[str, Use] = {}
    for name, role, number, failures, read, written, cost in await connection.execute(query):
        use = found.setdefault(name, Use())
        if role == CallRole.SERVED:
            use.calls += number
            use.failures += failures
        else:
            use.unseen += number
        use.prompt_tokens += read
        use.completion_tokens += written
        use.cost += cost
    for name, seconds in (await _seconds(connection, zoo, level)).items():
        use = found.setdefault(name, Use())
        use.median_seconds, use.p95_seconds = _rank(seconds, MEDIAN), _rank(seconds, MOST)
    return found


async def _seconds(connection: AsyncConnection, zoo: str, level: str) -> Mapping[str, list[float]]:
    """Read the seconds of the newest answers by model, in order, without those from a cache."""
    found: dict[str, list[float]] = {}
    for stream in (level, level_before(level)):
        for row in await newest_outcomes(connection, zoo, stream):
            is_answer = row.status == CallStatus.SUCCESS and not row.is_cache_hit
            if is_answer and row.seconds is not None:
                found.setdefault(row.served or "", []).append(row.seconds)
    return {name: sorted(seconds) for name, seconds in found.items()}


def _rank(seconds: list[float], share: float) -> float:
    """Return the quantile at ``share`` of the sorted seconds, by nearest rank."""
    return seconds[ceil(share * len(seconds)) - 1]


async def read_spend(connection: AsyncConnection, zoo: str, level: str) -> list[Plain]:
    """Read who caused the newest requests of a promise, however these were served."""
    request, streams = requests.c, (level, level_before(level))
    newest = (
        select(request.request_id, request.key_hash, request.key_alias, request.team_id)
        .where(request.zoo == zoo, request.service_level.in_(streams))
        .order_by(request.position.desc())
        .limit(SPENT_OF)
        .subquery()
    )
    of, cost = newest.c, func.sum(outcomes.c.cost)
    tokens = (
        select(
            calls.c.request_id,
            func.sum(calls.c.prompt_tokens + calls.c.completion_tokens).label("tokens"),
        )
        .where(calls.c.request_id.in_(select(of.request_id)))
        .group_by(calls.c.request_id)
        .subquery()
    )
    query = (
        select(
            func.max(of.key_alias).label("key_alias"),
            *(of.key_hash, of.team_id, func.count().label("requests")),
            func.count(case((outcomes.c.status == CallStatus.FAILURE, 1))).label("failed"),
            func.sum(tokens.c.tokens).label("tokens"),
            cost.label("cost"),
        )
        .join(outcomes, outcomes.c.request_id == of.request_id)
        .outerjoin(tokens, tokens.c.request_id == of.request_id)
        .group_by(of.key_hash, of.team_id)
        .order_by(func.coalesce(cost, 0.0).desc(), func.count().desc())
        .limit(SPENDERS)
    )
    return [dict(row._mapping) for row in await connection.execute(query)]


def details(
    status: Plain, level: Plain, uses: Mapping[str, Use], spend: list[Plain], days: int
) -> list[Plain]:
    """Write the sections of the screen; ``status`` is that of the promise's zoo alone."""
    known: dict[str, Any] = {"level": level, "unit": level["cost_unit"], "days": days}
    sections = {
        "Models": (
            *tables("page/models.j2", uses=uses, **known),
            *tables_of("predictions", status),
        ),
        "Labels": (
            *tables("page/labels.j2", judges=list(_judges(status)), **known),
            *tables_of("labels", status),
        ),
        "Spend": tables("page/spend.j2", spend=spend, most=SPENT_OF, **known),
        "Requests": tables_of("requests", status),
    }
    return [
        {"title": title, "tables": [each.plain() for each in written]}
        for title, written in sections.items()
    ]


def _judges(status: Plain) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for judge in status["judges"]:
        shown = [each for each in JUDGE if "kappa" not in each.path or judge["kappa"] is not None]
        yield judge["judge"], list(rows(shown, judge))
