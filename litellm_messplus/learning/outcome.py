"""The outcome of one request: the only rule, from all that is logged about it. Its result is stored
in the table `outcomes`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import RowMapping

from litellm_messplus.core.verdict import counting
from litellm_messplus.records import served_call_id
from litellm_messplus.rows import column, record
from litellm_messplus.runtime.vocabulary import PRECEDENCE, CallRole, CallStatus

Row = Mapping[str, Any] | RowMapping
"""A row of the log, read or to be written."""


@dataclass(frozen=True, slots=True)
class LoggedLabel:
    """What a verdict follows from: a label on the call ``call_id``; ``probability`` is that of the
    draw that bought it."""

    label_id: str
    call_id: str
    kind: str
    source: str
    value: float
    weight: float
    probability: float | None

    @property
    def stands_for(self) -> float:
        """The number of requests that the verdict stands for: weight over draw probability."""
        return self.weight / (self.probability or 1.0)


Verdicts = dict[str, LoggedLabel]
"""The labels that count, by the id of their call."""


def verdicts(
    labels: Sequence[LoggedLabel], calls: Sequence[Row], precedence: Sequence[str] = PRECEDENCE
) -> Verdicts:
    """Find the verdict on each call of a request, from its labels in log order and its ended
    calls: a failed one has no answer to judge."""
    failed = {call["call_id"] for call in calls if not succeeded(call)}
    by_call: dict[str, list[LoggedLabel]] = {}
    for each in labels:
        if each.call_id not in failed:
            by_call.setdefault(each.call_id, []).append(each)
    found = ((call_id, counting(of_call, precedence)) for call_id, of_call in by_call.items())
    return {call_id: each for call_id, each in found if each is not None}


@record
class Outcome:
    """One request: a row of the table `outcomes`. Costs are in the zoo's unit, as measured where
    they were measured; None is unknown, never zero."""

    request_id: str = column("Our own id of the request.", size=64)
    position: int = column("Place in the log.", is_position=True)
    day: date = column("The date of the request, UTC.")
    hour: int = column("The hour of that day, UTC, from 0.")
    zoo: str = column("The requested `model_name`.")
    service_level: str = column("The promise.")
    alpha: float = column("The share promised at that time.")
    arm: str = column("`routed`, or `before`: served as before.", size=16)
    is_exploration: bool = column("Whether anything but the best choice was tried.")
    queue: float = column("The virtual queue at the decision.")
    encode_seconds: float | None = column(
        "How long the features took; NULL where they came too late."
    )
    deciding_seconds: float = column("How long the rest of the decision took.")
    exploration_cost: float = column("What the exploration calls cost, as far as it is known.")
    judging_cost: float = column("What judging its answers cost, as far as it is known.")
    cost: float | None = column("What all calls cost, as far as it is known; NULL if none is.")
    unstated: int = column("Successful calls whose cost was unknown at their end.")
    served: str | None = column("The candidate that served; NULL before the call has ended.")
    status: str | None = column("`success` or `failure`; NULL before the call has ended.", size=16)
    failure: str | None = column("What failed; NULL if nothing did, or if unknown.", size=16)
    is_cache_hit: bool | None = column("Whether LiteLLM's cache answered.")
    seconds: float | None = column("How long the served call took.")
    served_cost: float | None = column(
        "What serving cost: the served call, and one whose answer was replaced."
    )
    cost_largest: float | None = column(
        "What the largest candidate alone would have cost; NULL if LiteLLM did not follow the "
        "router, whose choice then saved nothing."
    )
    is_labelled: bool = column("Whether the served call has a label, counting or not.")
    satisfaction: float | None = column("The value of the verdict on the served call.")
    satisfaction_weight: float | None = column("How many requests that verdict stands for.")
    satisfaction_kind: str | None = column("Its kind.", size=16)


_OF_REQUEST = (
    *("request_id", "position", "zoo", "service_level", "alpha", "arm", "is_exploration", "queue"),
    "encode_seconds",
)
_OF_CALL = ("status", "failure", "is_cache_hit", "seconds")
"""The columns of a request, and of its served call, that an outcome keeps as they are."""


def outcome(
    request: Row,
    calls: Sequence[Row],
    labels: Sequence[LoggedLabel],
    verdicts: Verdicts,
    judging_cost: float,
) -> Outcome:
    """Compute the outcome of a request. ``verdicts`` are those from ``labels``,
    ``judging_cost`` the cost of judging its answers."""
    served = next((call for call in calls if call["role"] == CallRole.SERVED), None)
    replaced = [call for call in calls if call["role"] == CallRole.REPLACED]
    unseen = explored(request, calls)
    serving_costs = [call["cost"] for call in (served, *replaced) if call is not None]
    serving_cost, is_priced = (
        _known(serving_costs),
        served is not None and None not in serving_costs,
    )
    unseen_costs = [call["cost"] for call in unseen]
    exploration_cost = _known(unseen_costs)
    is_known = any(cost is not None for cost in (*serving_costs, *unseen_costs))
    others = (*replaced, *unseen)
    call_id = served_call_id(request["request_id"])
    verdict = verdicts.get(call_id)
    at = in_utc(request["created_at"])
    of_call: dict[str, Any] = {name: served[name] if served else None for name in _OF_CALL}
    return Outcome(
        **{name: request[name] for name in _OF_REQUEST},
        day=at.date(),
        hour=at.hour,
        deciding_seconds=request["decision_seconds"] - (request["encode_seconds"] or 0.0),
        exploration_cost=exploration_cost,
        judging_cost=judging_cost,
        cost=serving_cost + exploration_cost if is_known else None,
        unstated=sum(succeeded(call) and call["cost"] is None for call in calls),
        served=served["candidate"] if served else None,
        **of_call,
        served_cost=serving_cost if is_priced else None,
        cost_largest=None if served is None else _of_largest(request, served, others),
        is_labelled=any(label.call_id == call_id for label in labels),
        satisfaction=None if verdict is None else verdict.value,
        satisfaction_weight=None if verdict is None else verdict.stands_for,
        satisfaction_kind=None if verdict is None else verdict.kind,
    )


def explored(request: Row, calls: Sequence[Row]) -> Sequence[Row]:
    """Return the calls that no user saw, if the request was an exploration."""
    if not request["is_exploration"]:
        return ()
    return [call for call in calls if call["role"] == CallRole.EXPLORATION]


def _known(costs: Sequence[float | None]) -> float:
    return sum([cost for cost in costs if cost is not None])


def in_utc(moment: datetime) -> datetime:
    """Return the moment in UTC: a request counts on the UTC day on which it was decided."""
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def succeeded(call: Row) -> bool:
    """Tell whether a call was answered."""
    return bool(call["status"] == CallStatus.SUCCESS)


def _of_largest(request: Row, served: Row, others: Sequence[Row]) -> float | None:
    """Compute the cost of the largest alone: its actual cost if it was called, else its price of
    the tokens of the served call, and only where those are unknown, what was expected.

    So the baseline of savings is never more than what the largest charges for the tokens that were
    used, however wrong an estimate was."""
    if served["served_not_chosen"]:
        return None
    # The largest's answer would have been repeated too.
    if served["is_cache_hit"] or served["candidate"] == request["largest"]:
        stated: float | None = served["cost"]
        return stated
    costs = (call["cost"] for call in others if call["candidate"] == request["largest"])
    known = [cost for cost in costs if cost is not None]
    expected, priced = request["estimated_cost_largest"], served["cost_largest"]
    if not known and expected is not None:  # else it could not have served
        known = [expected if priced is None else priced]
    return max(known, default=None)
