"""Decisions computed again from the log: each from the state it was made from, equal to the bit.

A row has the position of that state (`as_of`), what its worker had in flight, and its other inputs.
What a request cost each candidate is taken from the row: prompt caches and counted tokens are not
in the log. What cannot be computed again is counted, with the reason.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sqlalchemy import Row, and_, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.question import (
    ALONE,
    BASIS,
    FACTORS,
    GOES_ON,
    LABELLED,
    LEFT,
    USUAL_PARTS,
    Choice,
    Question,
)
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.routing.decision import Estimate, Reason, Situation
from litellm_messplus.routing.limits import Lateness, Limits
from litellm_messplus.runtime.vocabulary import is_before, promise_of
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.state.entries import Entry
from litellm_messplus.store.entries import PAGE
from litellm_messplus.store.log import TABLE_OF
from litellm_messplus.store.rows import features_from_bytes, logged_surface
from litellm_messplus.store.tables import log_head, requests
from litellm_messplus.upkeep.folding import Difference, Fold, difference
from litellm_messplus.upkeep.integrity import SHOWN, CheckResult, noted, some, sound, wrong

DECISIONS_CHECK = "decisions"

EARLIER = "logged by an earlier version"
UNDECIDED = "served as before without a decision"
UNFOLLOWED = "came too late, or found no healthy deployment"
PRUNED = "made from a state that is pruned"
UNREAD = "of a prompt whose surface is erased, or read by another version"
OTHER_BASIS = "made under another version, other settings or prices, and come out differently now"
OTHER_ENCODER = "made with another encoder"
NO_LEVEL = "of a service level that is not configured"
TAKEN_BACK = "come out differently, since lessons were taken back or rows deleted"

UNFOLLOWED_REASONS = (Reason.NONE_HEALTHY, Reason.DEADLINE_MISSED)
INPUTS = (
    "request_id zoo service_level alpha created_at encoder features surface surface_version "
    "prompt_characters estimated_cost expected_t eligible counted_with limits as_of in_flight "
    "inputs"
)
OUTPUTS = (
    "reason chosen would_choose queue aim price propensity expected_satisfaction "
    "estimated_satisfaction"
)
OF_DECISION = ("reason", "propensity", "price", "expected_satisfaction")
COLUMNS = [requests.c[name] for name in f"{INPUTS} {OUTPUTS}".split()]


@dataclass
class Decisions:
    """The decisions of a log up to ``head``, computed again while ``fold`` advances: ``same`` of
    them are equal to the bit, ``rounded`` but for rounding; ``left_out`` counts those that are not
    compared, by reason."""

    database: AsyncEngine
    fold: Fold
    head: int
    same: int = 0
    rounded: int = 0
    wrong: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    _known: Any = None
    _has_gaps: bool = False
    _next: int = 0
    _due: dict[str, deque[Row[Any]]] = field(default_factory=dict)

    async def to(self, position: int) -> None:
        """Fold up to that position, and compute each decision on the way again. Raises
        UnreadableLogError."""
        async with self.database.connect() as connection:
            if self._known is None:
                self._known = await self._positions(connection)
                self._has_gaps = await _has_gaps(connection)
            while self.fold.position < position:
                upto = min(self.fold.position + PAGE, position)
                await self._read(connection, upto)
                await self.fold.to(upto, comes=self._comes)
                for zoo in self._due:
                    self._compute(zoo, upto + 1)

    def findings(self) -> Iterator[CheckResult]:
        """Yield what was found."""
        compared = self.same + self.rounded + len(self.wrong)
        if self.wrong:
            text = (
                f"{len(self.wrong)} of {compared:,} decisions computed again are not as logged "
                f"({some(self.wrong[:SHOWN], len(self.wrong))})"
            )
            advice = (
                "were rows of the log changed by hand? If not, report it with the version of "
                "litellm-messplus"
            )
            yield wrong(DECISIONS_CHECK, text, advice)
        elif self.rounded:
            text = (
                f"{compared:,} decisions computed again: {self.same:,} the same, the others but "
                "for rounding, as on another processor or by another numpy"
            )
            yield noted(DECISIONS_CHECK, text)
        elif compared:
            yield sound(DECISIONS_CHECK, f"{compared:,} decisions computed again, all the same")
        if self.left_out:
            reasons = "; ".join(f"{n:,} {why}" for why, n in sorted(self.left_out.items()))
            count = self.left_out.total()
            yield noted(DECISIONS_CHECK, f"{count:,} requests are not compared: {reasons}")

    async def _positions(self, connection: AsyncConnection) -> Any:
        """Read the positions of the requests that can be computed again, by that of their state;
        count the others. Each takes 16 bytes."""
        own = requests.c
        of_these = and_(own.zoo.in_(list(self.fold.engines)), own.position <= self.head)
        found = []
        query = select(own.as_of, own.position, own.zoo, own.reason).where(of_these)
        async for row in await connection.stream(query):
            if row.reason == Reason.UNDECIDED:
                self.left_out[UNDECIDED] += 1
            elif row.reason in UNFOLLOWED_REASONS:
                self.left_out[UNFOLLOWED] += 1
            elif row.as_of is None:
                self.left_out[EARLIER] += 1
            elif row.as_of < self.fold.begins.get(row.zoo, 0):
                self.left_out[PRUNED] += 1
            else:
                found.append((row.as_of, row.position))
        return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)

    async def _read(self, connection: AsyncConnection, upto: int) -> None:
        """Read the requests that were decided from the states up to a position."""
        end = int(np.searchsorted(self._known[:, 0], upto, side="right"))
        while self._next < end:
            stop = min(self._next + PAGE, end)
            positions = self._known[self._next : stop, 1].tolist()
            query = select(*COLUMNS).where(requests.c.position.in_(positions))
            query = query.order_by(requests.c.as_of, requests.c.position)
            for row in await connection.execute(query):
                self._due.setdefault(row.zoo, deque()).append(row)
            self._next = stop

    def _comes(self, entry: Entry) -> None:
        if entry.zoo in self._due:
            self._compute(entry.zoo, entry.position)

    def _compute(self, zoo: str, before: int) -> None:
        """Compute the decisions from the states before a position."""
        engine, due = self.fold.engines[zoo], self._due[zoo]
        while due and due[0].as_of < before:
            self._compare(engine, due.popleft())

    def _compare(self, engine: Engine, row: Row[Any]) -> None:
        reason = _left_out(engine, row)
        if reason is not None:
            self.left_out[reason] += 1
            return
        try:
            logged, again = _logged(row), _computed(engine, row)
        except (KeyError, ValueError) as error:
            logged, again = {"candidates": ""}, {"candidates": f"{type(error).__name__}: {error}"}
        if logged == again:
            self.same += 1
            return
        found = difference(logged, again)
        if found.is_rounding:
            self.rounded += 1
        elif row.inputs.get(BASIS) != engine.basis:
            self.left_out[OTHER_BASIS] += 1
        elif self._has_gaps:
            self.left_out[TAKEN_BACK] += 1
        else:
            self.wrong.append(_difference_text(row, found, logged, again))


async def _has_gaps(connection: AsyncConnection) -> bool:
    """Tell whether rows are missing from a log that was never pruned, as after `messplus import
    --lessons --forget`."""
    start, head = (await connection.execute(select(log_head.c.start, log_head.c.position))).one()
    count = 0
    for table in TABLE_OF.values():
        count += (await connection.execute(select(func.count()).select_from(table))).scalar_one()
    return bool(start == 0 and count < head)


def _difference_text(
    row: Row[Any], found: Difference, logged: Mapping[str, Any], again: Mapping[str, Any]
) -> str:
    place = found.place
    return f"{row.request_id}: {place} is {logged.get(place)}, and {again.get(place)} again"


def _left_out(engine: Engine, row: Row[Any]) -> str | None:
    """Return why a decision cannot be computed again; None if it can."""
    if row.encoder != engine.encoder.name:
        return OTHER_ENCODER
    if logged_surface(row.surface, row.surface_version) is None:
        return UNREAD
    return None if promise_of(row.service_level) in engine.zoo.streams else NO_LEVEL


def _logged(row: Row[Any]) -> dict[str, Any]:
    """Return what is compared, as logged. Of a request that was served as before, the router's
    choice is in a column of its own."""
    return {
        **{name: getattr(row, name) for name in (*OF_DECISION, "queue", "aim")},
        "chosen": row.would_choose if is_before(row.service_level) else row.chosen,
        **_satisfactions(row.estimated_satisfaction),
    }


def _satisfactions(by_candidate: Mapping[str, float]) -> dict[str, float]:
    return {f"estimated_satisfaction.{name}": each for name, each in by_candidate.items()}


def _computed(engine: Engine, row: Row[Any]) -> dict[str, Any]:
    """Decide the request of a row from the engine's state, which must be the one that it was
    decided from. Raises KeyError if it had other candidates."""
    engine.price_factors = dict(row.inputs.get(FACTORS, {}))
    engine.usual_parts = dict(row.inputs.get(USUAL_PARTS, {}))
    question = _question(engine, row)
    choice = _chosen(engine, row, question, _situation(engine, row, question))
    engine.forget(row.request_id)
    if choice is None:
        return {"chosen": None}
    situation, decision = choice.situation, choice.decision
    return {
        **{name: getattr(decision, name) for name in OF_DECISION},
        "chosen": decision.chosen,
        "queue": situation.queue,
        "aim": situation.alpha,
        **_satisfactions({each.candidate: each.satisfaction for each in situation.everyone}),
    }


def _question(engine: Engine, row: Row[Any]) -> Question:
    return Question(
        row.request_id,
        _level(engine, row),
        Prompt(
            None if row.features is None else features_from_bytes(row.features),
            logged_surface(row.surface, row.surface_version),
        ),
        row.prompt_characters,
        tuple(name for name in engine.zoo.present if name in row.estimated_cost),
        is_gated=row.eligible is not None,
        counted_with=row.counted_with,
        at=row.created_at.timestamp(),
        is_alone=bool(row.inputs.get(ALONE)),
        may_go_on=bool(row.inputs.get(GOES_ON)),
    )


def _level(engine: Engine, row: Row[Any]) -> ServiceLevel:
    level = engine.zoo.streams[promise_of(row.service_level)]
    return level.model_copy(update={"name": row.service_level, "alpha": row.alpha})


def _situation(engine: Engine, row: Row[Any], question: Question) -> Situation:
    """Build the situation of a logged request, with what its state does not show from the row."""
    found = engine.situation(question)

    def priced(estimates: tuple[Estimate, ...]) -> tuple[Estimate, ...]:
        return tuple(replace(e, cost=row.estimated_cost[e.candidate]) for e in estimates)

    limits = None
    if row.limits is not None and found.limits is not None:
        limits = _limits(row.limits, found.limits)
    usual = tuple(each.candidate for each in found.estimates)
    return replace(
        found,
        t=row.expected_t,
        in_flight=row.in_flight,
        estimates=priced(found.estimates),
        newcomers=priced(found.newcomers),
        limits=limits,
        outlook=found.outlook if limits is None else engine.outlook(usual, limits, found.spread),
    )


def _limits(logged: Mapping[str, Any], found: Limits) -> Limits:
    """Return the limits as they stood: with the lateness of this request, and what was in flight.
    The charge is logged in place of the price, which it equals if the budget allows it."""
    late = logged.get("late", {})
    then = {name: Lateness(late[name], found.late[name].typical) for name in late}
    stated = {name: logged[name] for name in Limits._fields if name in logged}
    return Limits(**{**stated, "late": then})


def _chosen(
    engine: Engine, row: Row[Any], question: Question, situation: Situation
) -> Choice | None:
    match row.reason:
        case Reason.HELD:
            return engine.hold(question, row.chosen, situation)
        case Reason.TROUBLE:
            return engine.go_up(question, row.inputs[LEFT], situation)
    is_labelled = row.inputs.get(LABELLED)
    return engine.decide(question, lambda _: is_labelled, situation)
