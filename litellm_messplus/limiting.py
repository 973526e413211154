"""Where a service level stands against its limits beside alpha, as a request is decided."""

from collections.abc import Iterable, Sequence

from litellm_messplus.routing.decision import Decision, Estimate, Situation
from litellm_messplus.routing.limits import (
    DAY,
    LATE_SHARE,
    Lateness,
    Limits,
    allowed_share,
    late_price,
    strain,
)
from litellm_messplus.settings.schema import ServiceLevel
from litellm_messplus.state.entries import LimitedUse
from litellm_messplus.state.limits import day_of
from litellm_messplus.state.zoo_state import ZooState
from litellm_messplus.vocabulary import is_before


def is_limited(level: ServiceLevel) -> bool:
    """Return whether a level has a limit. What is served as before has none: another router chose
    its models."""
    has_one = level.latency is not None or level.budget_per_day is not None
    return has_one and not is_before(level.name)


def limits_of(
    level: ServiceLevel,
    state: ZooState,
    estimates: Sequence[Estimate],
    in_flight: Iterable[LimitedUse],
    at: float,
) -> Limits | None:
    """Work out where a level stands ``at`` a time in seconds since 1970; None without limits.
    ``in_flight`` are the requests that are not in the log yet."""
    if not is_limited(level):
        return None
    account, found, waiting = state.limits.account(level.name), Limits(), tuple(in_flight)
    if level.latency is not None:
        owed = account.late_owed + sum(each.late - LATE_SHARE for each in waiting)
        limit = level.latency.p95_seconds
        found = found._replace(
            late_after=limit,
            late_owed=owed,
            late_price=late_price(owed, [each.typical_cost for each in estimates]),
            late={each.candidate: _lateness(state, each, limit) for each in estimates},
        )
    if level.budget_per_day is not None:
        day, budget = day_of(at), level.budget_per_day
        spent = account.spent(day) + sum(each.cost for each in waiting)
        elapsed = at - day * DAY
        found = found._replace(
            budget=budget,
            spent=spent,
            allowed=budget * allowed_share(elapsed),
            strain=strain(spent, budget, elapsed),
        )
    return found


def _lateness(state: ZooState, estimate: Estimate, limit: float) -> Lateness:
    durations = state.durations[estimate.candidate]
    return Lateness(
        durations.late(estimate.length, limit, LATE_SHARE), durations.late(1.0, limit, LATE_SHARE)
    )


def use_of(situation: Situation, decision: Decision) -> LimitedUse | None:
    """Expect how late a decided request is, and what all its calls cost; None without limits."""
    limits = situation.limits
    if limits is None:
        return None
    called = {decision.chosen, *decision.explored}
    cost = sum(each.cost for each in situation.everyone if each.candidate in called)
    late = limits.late[decision.chosen].now if limits.late_after is not None else LATE_SHARE
    return LimitedUse(late, cost)
