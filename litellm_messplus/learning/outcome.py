"""The outcome of one request: the only rule, as one statement over all that is logged about it."""

from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Insert,
    and_,
    bindparam,
    case,
    exists,
    extract,
    func,
    literal_column,
    or_,
    select,
)

from litellm_messplus.runtime.vocabulary import CallRole, CallStatus
from litellm_messplus.store.rows import replacing
from litellm_messplus.store.tables import (
    calls,
    gradings,
    labels,
    outcomes,
    requests,
    served_call,
)

_served, _each, _verdict = calls.alias("served"), calls.alias("each"), labels.alias("verdict")
_ZERO: ColumnElement[float] = literal_column("0.0")


@cache
def outcomes_of(dialect: str) -> Insert:
    """Build the statement that writes the outcomes of the requests with the given ``ids``: all
    their ``calls``, what judging them cost, and the label that counts on the served one."""
    of, served, verdict = requests.c, _served.c, _verdict.c
    judged = select(func.sum(gradings.c.zoo_cost)).where(gradings.c.request_id == of.request_id)
    is_labelled = exists(labels.c.label_id).where(labels.c.call_id == served_call(requests))
    # A request counts on the UTC day on which it was decided.
    at = of.created_at if dialect == "sqlite" else func.timezone("UTC", of.created_at)
    values = {
        "day": func.date(at),
        "hour": extract("hour", at),
        "deciding_seconds": of.decision_seconds - func.coalesce(of.encode_seconds, _ZERO),
        "judging_cost": func.coalesce(judged.scalar_subquery(), _ZERO),
        "served": served.candidate,
        **{name: served[name] for name in ("status", "failure", "is_cache_hit", "seconds")},
        "is_labelled": is_labelled,
        "satisfaction": verdict.value,
        "satisfaction_weight": verdict.weight / func.coalesce(verdict.probability, 1.0),
        "satisfaction_kind": verdict.kind,
        **_of_calls(),
    }
    names = [each.name for each in outcomes.columns]
    query = (
        select(*(values[name] if name in values else of[name] for name in names))
        .select_from(requests)
        .outerjoin(_served, served.call_id == served_call(requests))
        .outerjoin(_each, _each.c.request_id == of.request_id)
        .outerjoin(_verdict, and_(verdict.call_id == served_call(requests), verdict.counts))
        .where(of.request_id.in_(bindparam("ids", expanding=True)))
        .group_by(of.request_id, served.call_id, verdict.label_id)
    )
    return replacing(outcomes, dialect).from_select(names, query)


def _of_calls() -> dict[str, Any]:
    """Return what follows from the costs of all calls of a request."""
    of, served, each = requests.c, _served.c, _each.c
    is_unseen = and_(each.role == CallRole.EXPLORATION, of.is_exploration)
    is_replaced = each.role == CallRole.REPLACED
    is_own = or_(each.role == CallRole.SERVED, is_replaced, is_unseen)
    is_unpriced = and_(is_replaced, each.cost.is_(None))
    is_unstated = and_(each.status == CallStatus.SUCCESS, each.cost.is_(None))
    cost = func.sum(each.cost)
    serving = served.cost + func.coalesce(cost.filter(is_replaced), _ZERO)
    is_largest = and_(or_(is_replaced, is_unseen), each.candidate == of.largest)
    return {
        "exploration_cost": func.coalesce(cost.filter(is_unseen), _ZERO),
        "cost": cost.filter(is_own),
        "unstated": func.count().filter(is_unstated),
        "served_cost": case((func.count().filter(is_unpriced) == 0, serving)),
        "cost_largest": _of_largest(func.max(each.cost).filter(is_largest)),
    }


def _of_largest(called: ColumnElement[float]) -> ColumnElement[float | None]:
    """Return the cost of the largest alone: its actual cost if it was ``called``, else its price of
    the tokens of the served call, and only where those are unknown, what was expected.

    So the baseline of savings is never more than what the largest charges for the tokens that were
    used, however wrong an estimate was."""
    of, served = requests.c, _served.c
    # Without an expected cost it could not have served.
    priced = func.coalesce(served.cost_largest, of.estimated_cost_largest)
    else_priced = case((of.estimated_cost_largest.is_not(None), priced))
    return case(
        (or_(served.call_id.is_(None), served.served_not_chosen), None),
        # The largest's answer would have been repeated too.
        (or_(served.is_cache_hit, served.candidate == of.largest), served.cost),
        else_=func.coalesce(called, else_priced),
    )
