"""Forecast of reading answers: what it would save, and by how much it would slow requests.

It is what the plan expects of the newest decided requests: at the price that holds alpha with
reading, and at the one without. What answers show is taken from the newest snapshot; it is learned
whether answers are replaced or not, so while a zoo watches too.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.core.answer_heads import Spread
from litellm_messplus.core.decision import Reason
from litellm_messplus.core.plan import EVIDENCE, Frontier, Matrix, Outlook, ReadingGains, rising
from litellm_messplus.core.second_answer import gains, shares
from litellm_messplus.runtime.vocabulary import CallStatus
from litellm_messplus.store.model_changes import newest_predictors
from litellm_messplus.store.tables import calls, requests

NEWEST, FEWEST = 500, 50
"""Requests of a zoo that the forecast is from, and the fewest for one."""

COLUMNS = ("estimated_satisfaction", "estimated_cost", "position", "alpha", "is_stream", "is_alone")

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SecondAnswers:
    """The forecast over ``requests`` requests: the share whose answer would be ``replaced``, the
    ``cost`` of a request with that and ``without`` it at the same satisfaction, and the ``seconds``
    that it adds to the mean request, None if a model's durations are unknown."""

    requests: int
    replaced: float
    cost: float
    without: float
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Expected:
    """The expectations of requests: ``rates`` and ``costs`` of shape (requests, models); whether
    each ``may_go_on``, and each model's ``seconds`` a call, NaN if unknown."""

    rates: Matrix
    costs: Matrix
    may_go_on: NDArray[np.bool_]
    seconds: Vector


def second_answers(expected: Expected, alpha: float, spread: Spread) -> SecondAnswers:
    """Compute what reading answers would change at alpha, or at the best rate below it."""
    rates, costs = expected.rates, expected.costs
    by_cost = np.argsort(costs.mean(axis=0), kind="stable").tolist()
    plain = Outlook(rates, costs, [0.0] * len(by_cost)).frontier(by_cost, is_hopeful=False)
    aim = min(alpha, plain.most)
    without = plain.at(aim).cost
    if not expected.may_go_on.any():
        return SecondAnswers(len(rates), 0.0, without, without, 0.0)
    share = float(expected.may_go_on.mean())
    rates, costs = rates[expected.may_go_on], costs[expected.may_go_on]
    then = _with_reading(plain, by_cost, rates, costs, spread, share).at(aim)
    value = gains(rates, costs, spread, np.array([then.price])).value[0]
    first = (costs - then.price * rates - value).argmin(axis=1)
    found = shares(rates, costs, spread, then.price)[np.arange(len(first)), first]
    by_model = share * found.mean(axis=0)
    called = by_model > 0.0
    seconds = float(by_model[called] @ expected.seconds[called])
    return SecondAnswers(
        len(expected.rates),
        float(by_model.sum()),
        then.cost,
        without,
        None if np.isnan(seconds) else seconds,
    )


def _with_reading(
    plain: Frontier,
    by_cost: Sequence[int],
    rates: Matrix,
    costs: Matrix,
    spread: Spread,
    share: float,
) -> Frontier:
    """Add to a frontier what reading the answers of a ``share`` of the requests, with these rates
    and costs, changes."""
    prices, none = np.array(plain.prices, np.float32), np.zeros(len(plain.prices))
    more = ReadingGains(rates, costs, spread, prices).added(by_cost, none, none)
    added = zip((plain.rates, plain.costs), more, strict=True)
    return Frontier(plain.prices, *(rising(base + share * each) for base, each in added))


# The reading of the log.


async def read_second_answers(connection: AsyncConnection, zoo: str) -> SecondAnswers | None:
    """Read the forecast of a zoo; None while the plan does not decide, or too little is known."""
    known = (await newest_predictors(connection, zoo)).get(zoo)
    if known is None:
        return None
    spread, request = known.answers.spread, requests.c
    if max(known.heads.evidence, float(spread.evidence[0])) < EVIDENCE:
        return None
    query = (
        select(*(request[name] for name in COLUMNS))
        .where(request.zoo == zoo, request.reason != Reason.UNDECIDED)
        .order_by(request.position.desc())
        .limit(NEWEST)
    )
    rows = (await connection.execute(query)).all()
    names, rows = comparable(rows, known.candidates)
    if len(rows) < FEWEST or len(names) < 2:
        return None
    alpha = float(np.mean([row.alpha for row in rows]))
    seconds = await _seconds(connection, zoo, rows[-1].position)
    places = [known.index[name] for name in names]
    expected = _expected(rows, names, seconds)
    return await asyncio.to_thread(second_answers, expected, alpha, spread.of(places))


def comparable(rows: Sequence[Any], candidates: Sequence[str]) -> tuple[list[str], list[Any]]:
    """Return those of the candidates that any request has estimates of, and the requests that have
    estimates of them all; others are from before a candidate was added, or while one was away."""
    estimated = [row.estimated_cost.keys() & row.estimated_satisfaction.keys() for row in rows]
    names = [name for name in candidates if any(name in each for each in estimated)]
    whole = zip(rows, estimated, strict=True)
    return names, [row for row, each in whole if each.issuperset(names)]


def estimates(rows: Sequence[Any], names: Sequence[str]) -> tuple[Matrix, Matrix]:
    """Return the expected satisfaction and cost of the candidates, shape (requests, names)."""
    rates = [[row.estimated_satisfaction[name] for name in names] for row in rows]
    costs = [[row.estimated_cost[name] for name in names] for row in rows]
    return np.array(rates), np.array(costs)


def _expected(
    rows: Sequence[Row[Any]], names: Sequence[str], seconds: Mapping[str, float]
) -> Expected:
    rates, costs = estimates(rows, names)
    may_go_on = np.array([not row.is_stream and not row.is_alone for row in rows])
    return Expected(rates, costs, may_go_on, np.array([seconds.get(n, np.nan) for n in names]))


async def _seconds(connection: AsyncConnection, zoo: str, since: int) -> dict[str, float]:
    """Read how long each candidate's calls took on average, since a position of the log."""
    own = calls.c
    query = (
        select(own.candidate, func.avg(own.seconds))
        .join(requests, requests.c.request_id == own.request_id)
        .where(requests.c.zoo == zoo, requests.c.position >= since)
        .where(own.status == CallStatus.SUCCESS, own.is_cache_hit.is_(False))
        .where(own.seconds.is_not(None))
        .group_by(own.candidate)
    )
    return {row[0]: float(row[1]) for row in await connection.execute(query)}
