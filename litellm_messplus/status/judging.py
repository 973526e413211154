"""What the judges did, at what cost, and whether they agree with the users."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.labels.agreement import ENOUGH, Agreement
from litellm_messplus.status.alerts import Alert, AlertKind
from litellm_messplus.status.label_report import JudgeStatus
from litellm_messplus.store.agreement import agreements
from litellm_messplus.store.tables import grading_sums, gradings, label_precedence, labels

JudgeKey = tuple[str, str]
"""Zoo and judge."""


@dataclass(frozen=True, slots=True)
class Grading:
    """What one judge did for one zoo. ``weight`` is that of its newest label; ``is_left_out`` where
    the rule of the zoo does not name judges."""

    gradings: int
    graded: int
    cost: float | None
    without_cost: int
    weight: float | None
    is_left_out: bool
    agreement: Agreement


async def judging(connection: AsyncConnection) -> dict[JudgeKey, Grading]:
    """By zoo and judge, over the whole time, from the sums; the agreement over its newest calls."""
    weights = await _newest_weights(connection)
    agreed = await agreements(connection)
    left_out = await _left_out(connection)
    found = grading_sums.c
    query = select(
        found.zoo,
        found.judge,
        func.sum(found.gradings),
        func.sum(found.graded),
        func.sum(found.cost),
        func.sum(found.gradings_without_cost),
    ).group_by(found.zoo, found.judge)
    return {
        (zoo, judge): Grading(
            gradings=asked,
            graded=graded,
            cost=cost,
            without_cost=without_cost,
            weight=weights.get((zoo, judge)),
            is_left_out=zoo in left_out,
            agreement=agreed.get((zoo, judge), Agreement()),
        )
        for zoo, judge, asked, graded, cost, without_cost in await connection.execute(query)
    }


async def _newest_weights(connection: AsyncConnection) -> dict[JudgeKey, float]:
    """Of the labels of each judge's newest grading."""
    found = grading_sums.c
    newest = (
        select(found.zoo, found.judge, func.max(found.newest_graded).label("position"))
        .group_by(found.zoo, found.judge)
        .subquery()
    )
    query = (
        select(newest.c.zoo, newest.c.judge, labels.c.weight)
        .select_from(newest)
        .join(gradings, gradings.c.position == newest.c.position)
        .join(labels, labels.c.request_id == gradings.c.request_id)
        .where(labels.c.kind == "judge")
        .order_by(labels.c.position)
    )
    return {(zoo, judge): weight for zoo, judge, weight in await connection.execute(query)}


async def _left_out(connection: AsyncConnection) -> set[str]:
    """The zoos whose rule does not count what judges say."""
    query = select(label_precedence.c.zoo).where(
        label_precedence.c.kind == "judge", label_precedence.c.rank.is_(None)
    )
    return set((await connection.execute(query)).scalars())


def judge_status(key: JudgeKey, found: Grading, least: float | None) -> JudgeStatus:
    """For the report; ``least`` is the kappa below which it stops counting, where that is known."""
    said = found.agreement
    low, high = said.interval if said.calls else (None, None)
    counts = None if found.weight is None else found.weight > 0.0 and not found.is_left_out
    return JudgeStatus(
        zoo=key[0],
        judge=key[1],
        gradings=found.gradings,
        graded=found.graded,
        cost=found.cost,
        gradings_without_cost=found.without_cost,
        both_satisfied=said.both_satisfied,
        only_judge_satisfied=said.only_judge_satisfied,
        only_user_satisfied=said.only_user_satisfied,
        neither=said.neither,
        kappa=said.kappa,
        kappa_low=low,
        kappa_high=high,
        counts=counts,
        note=_note(found, least),
    )


def judge_alerts(found: Mapping[JudgeKey, Grading], judges: tuple[JudgeStatus, ...]) -> list[Alert]:
    """Of judges whose labels have stopped counting because they agree too little with users."""
    return [
        Alert(AlertKind.JUDGE_STOPPED, f"the judge {each.judge} {each.note}", each.zoo)
        for each in judges
        if found[each.zoo, each.judge].weight == 0.0
    ]


def _note(found: Grading, least: float | None) -> str:
    """Whether it counts, and why."""
    if found.weight is None:
        return "has graded nothing yet"
    if found.is_left_out:
        return "does not count: judges are left out of the precedence"
    kappa = found.agreement.kappa
    if found.weight == 0.0:
        shown = "unknown" if kappa is None else f"{kappa:.2f}"
        below = "too low" if least is None else f"below {least:g}"
        return f"does not count: agreement {shown} {below}"
    if kappa is None or not found.agreement.is_enough:
        both = found.agreement.calls
        return f"counts: agreement unknown, {both} of {ENOUGH} calls that users judged too"
    return f"counts: agreement {kappa:.2f}"
