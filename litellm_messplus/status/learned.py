"""Findings of the heads that read prompts and answers, and the cost saved: `messplus status
--learned`.

The state of the heads comes from the running engine, else from the newest snapshot. The saving
comes from the log, whose newest requests hold the expected cost and satisfaction of each candidate.
Over these, the cheapest way to hold alpha with a model for every prompt is compared with the
cheapest fixed mix at the same means."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from rich.console import Group, RenderableType
from rich.text import Text
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.figures.words import percent
from litellm_messplus.prediction.learned import Change, ModelView, ZooView, zoo_view
from litellm_messplus.prediction.predictor import Predictor
from litellm_messplus.routing.plan import PRICES, Frontier, Matrix
from litellm_messplus.routing.price import lower_hull
from litellm_messplus.runtime.terminal import Rows, numbers, whole, words
from litellm_messplus.status.answers import ZooAnswers, answers_shown, read_answers
from litellm_messplus.status.second_answers import comparable, estimates
from litellm_messplus.store.model_changes import newest_predictors
from litellm_messplus.store.reading import one_moment, reading
from litellm_messplus.store.tables import request_sums, requests

NEWEST = 500
"""Requests of a service level over which the saving is computed."""
FEWEST = 50

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Saving:
    """Share of the cost that reading saves at alpha against the means, as expected over
    ``requests`` requests."""

    service_level: str
    alpha: float
    requests: int
    saved: float


@dataclass(frozen=True, slots=True)
class LearnedZoo:
    """One zoo: what its heads have learned, None if no snapshot has it, what reading saves, by
    service level, and what its ``answers`` show, None before the first."""

    zoo: str
    reading: ZooView | None
    savings: tuple[Saving, ...]
    answers: ZooAnswers | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """Every zoo of a log."""

    zoos: tuple[LearnedZoo, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        plain: dict[str, Any] = _ADAPTER.dump_python(self, mode="json")
        return plain

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Learned":
        """Rebuild from the result of ``as_dict``. Raises pydantic.ValidationError for anything
        else."""
        return _ADAPTER.validate_python(plain)


_ADAPTER: TypeAdapter[Learned] = TypeAdapter(Learned)


async def learned_of(database: str) -> Learned:
    """Read what was learned from the log of a database, and from its snapshots.

    Raises UnreadableDatabaseError if there is none, or none of this version.
    """
    async with reading(database) as engine:
        return await learned_now(engine)


async def learned_now(database: AsyncEngine) -> Learned:
    """Read the savings from the log, and the beliefs from the newest snapshots of the learner, some
    seconds old."""
    async with database.connect() as connection, one_moment(connection):
        known = await newest_predictors(connection)
        savings, answers = await _savings(connection, known), await read_answers(connection, known)
    return _together(savings, known, {each.zoo: each for each in answers})


def _together(
    savings: Mapping[str, Sequence[Saving]],
    known: Mapping[str, Predictor | None],
    answers: Mapping[str, ZooAnswers],
) -> Learned:
    """Group by zoo, in the order of the log."""
    found = []
    for zoo in dict.fromkeys((*known, *savings)):
        predictor = known.get(zoo)
        view = None if predictor is None else zoo_view(predictor)
        found.append(LearnedZoo(zoo, view, tuple(savings.get(zoo, ())), answers.get(zoo)))
    return Learned(tuple(found))


async def _savings(
    connection: AsyncConnection, known: Mapping[str, Predictor | None]
) -> dict[str, list[Saving]]:
    """Read the savings by zoo and service level from the newest requests, over the candidates that
    the zoo is ``known`` to have; a level with fewer than ``FEWEST`` requests with every candidate
    healthy is left out."""
    level, request = (request_sums.c.zoo, request_sums.c.service_level), requests.c
    pairs = select(*level).distinct().order_by(*level)
    found: dict[str, list[Saving]] = {}
    for zoo, name in (await connection.execute(pairs)).all():
        query = (
            select(request.alpha, request.estimated_satisfaction, request.estimated_cost)
            .where(request.zoo == zoo, request.service_level == name)
            .order_by(request.position.desc())
            .limit(NEWEST)
        )
        rows = (await connection.execute(query)).all()
        predictor = known.get(zoo)
        logged = dict.fromkeys(each for row in rows for each in row.estimated_cost)
        names, full = comparable(rows, tuple(predictor.candidates if predictor else logged))
        if len(full) >= FEWEST and len(names) > 1:
            expected = estimates(full, names)
            found.setdefault(zoo, []).append(_saving(name, rows[0].alpha, *expected))
    return found


def _saving(level: str, alpha: float, satisfaction: Matrix, cost: Matrix) -> Saving:
    """Compare the plan with the cheapest mix, by the expected satisfaction and cost of each
    candidate, shape (requests, candidates); below zero if the plan would cost more."""
    order = np.argsort(cost.mean(axis=0), kind="stable")
    satisfaction, cost = satisfaction[:, order], cost[:, order]
    prices = PRICES * np.ptp(cost.mean(axis=0))
    served = (cost - prices[:, None, None] * satisfaction).argmin(axis=2)
    every = np.arange(len(cost))
    chosen = (satisfaction[every, served], cost[every, served])
    rates, costs = (np.maximum.accumulate(each.mean(axis=1)).tolist() for each in chosen)
    mix = _mix(satisfaction.mean(axis=0), cost.mean(axis=0), alpha)
    plan = Frontier(prices.tolist(), rates, costs).at(alpha).cost
    saved = 1.0 - plan / mix if mix > 0.0 else 0.0
    return Saving(level, alpha, len(cost), saved)


def _mix(rates: Vector, costs: Vector, alpha: float) -> float:
    """Compute the cost of a request under the cheapest fixed mix that holds alpha."""
    by_cost = np.argsort(costs, kind="stable").tolist()
    hull = lower_hull(by_cost, costs.tolist(), rates.tolist())
    return float(np.interp(alpha, rates[list(hull)], costs[list(hull)]))


# What was learned, for people: a table for each zoo, in words.

SHOWN_FAMILIES = 4
SHOWN_CHANGES = 2
CONVINCING = 5.0
"""Nats of evidence from which the router decides by what it reads (`routing/plan.py`)."""


def render_learned(found: Learned) -> RenderableType:
    """Render everything, to be printed by a rich console."""
    if not found.zoos:
        return Text("no requests yet")
    return Group(*(part for zoo in found.zoos for part in _zoo(zoo)))


def _zoo(zoo: LearnedZoo) -> Iterator[RenderableType]:
    for saving in zoo.savings:
        yield Text(_saving_in_words(zoo.zoo, saving))
    if zoo.reading is None:
        yield Text(
            f"{zoo.zoo}: no snapshot shows yet what was learned; a running proxy takes one every "
            "15 seconds"
        )
        return
    yield Text(_evidence(zoo.zoo, zoo.reading.evidence))
    rows = Rows(
        f"{zoo.zoo}: what moves the chance of a satisfactory answer",
        (
            *whole("model"),
            *numbers("on average"),
            *words("by the prompt, on the log-odds (what moves it most first)"),
        ),
    )
    for model in zoo.reading.models:
        rows.add(model.candidate, _rate(model), "\n".join(_families(model)) or "nothing yet")
    yield rows
    if zoo.answers is not None:
        yield from answers_shown(zoo.answers)


def _saving_in_words(zoo: str, found: Saving) -> str:
    return (
        f"{zoo}, {found.service_level}: at alpha {found.alpha:g} reading saves an expected "
        f"{percent(found.saved, 0)} against the best fixed mix, over "
        f"the newest {found.requests} requests"
    )


def _evidence(zoo: str, nats: float) -> str:
    if nats >= CONVINCING:
        return f"{zoo}: reading predicts better than the means by {nats:.0f} nats: it decides"
    return f"{zoo}: reading has not proved itself yet ({nats:.1f} of {CONVINCING:g} nats)"


def _rate(model: ModelView) -> str:
    rate = f"{percent(model.rate, 0)} ± {percent(model.deviation, 0)}"
    return f"{rate}\n({model.labels:.0f} labels)"


def _families(model: ModelView) -> Iterator[str]:
    for family in model.families[:SHOWN_FAMILIES]:
        if family.spread >= 0.05:
            changes = "; ".join(_change(change) for change in family.changes[:SHOWN_CHANGES])
            yield f"{family.name} (spread {family.spread:.1f}): {changes}"


def _change(change: Change) -> str:
    """Show a change as `digits 2 to 31: -1.8 ± 0.3`."""
    doubt = "" if change.is_sure else ", not sure"
    span = f"{_value(change.low)} to {_value(change.high)}"
    return f"{change.number} {span}: {change.nats:+.1f} ± {change.deviation:.1f}{doubt}"


def _value(value: float) -> str:
    return f"{value:.0f}" if value >= 10.0 or value == round(value) else f"{value:.2g}"
