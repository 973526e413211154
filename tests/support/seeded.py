"""A history of two promises with known answers, long enough that something can be said of it."""

from dataclasses import replace

from litellm_messplus.core.decision import Reason
from litellm_messplus.records import (
    CallRecord,
    LabelRecord,
    RequestRecord,
    exploration_call_id,
    served_call_id,
)
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus, CostSource, LabelKind
from tests.support.history import ALPHA, CANDIDATES, LARGEST, SMALL, ZOO, History, make_history

__all__ = ["ALPHA", "CANDIDATES", "LARGEST", "SMALL", "ZOO", "Case", "add", "seeded"]

TEMPLATE = make_history()
REQUEST, CALL, LABEL = TEMPLATE.requests[1], TEMPLATE.calls[0], TEMPLATE.labels[0]
GRADING = TEMPLATE.gradings[0]
COSTS = dict(zip(CANDIDATES, (0.001, 0.01, 0.1), strict=True))


class Case:
    """What one request came to; ``verdicts`` are the user's of the served call, the newest last,
    ``judged`` is the judge's, ``checked`` a check's, which weighs little."""

    def __init__(
        self,
        candidate: str | None = SMALL,
        verdicts: tuple[float, ...] = (),
        *,
        level: str = "default",
        alpha: float | None = None,
        cost: float | None = -1.0,
        explored: dict[str, float] | None = None,
        is_within_reach: bool = True,
        is_probe: bool = False,
        has_ended: bool = True,
        judged: float | None = None,
        checked: float | None = None,
    ) -> None:
        self.candidate, self.verdicts, self.level = candidate, verdicts, level
        self.alpha = ALPHA[level] if alpha is None else alpha
        self.cost = COSTS.get(candidate or "", 0.02) if cost == -1.0 else cost
        self.explored = explored or {}
        self.is_within_reach, self.is_probe, self.has_ended = is_within_reach, is_probe, has_ended
        self.judged, self.checked = judged, checked


def add(history: History, case: Case) -> None:
    """One more request; the log holds requests, then calls, then labels."""
    number = len(history.requests)
    request = replace(
        REQUEST,
        request_id=f"r{number:05}",
        asker=replace(REQUEST.asker, litellm_call_id=f"c{number:05}"),
        service_level=case.level,
        alpha=case.alpha,
        expected_t=number + 1,
        policy="adaptive",
        encode_seconds=0.002,
        decision_seconds=0.003,
        queue=0.01 * number,
        price=0.5 + number,
        is_exploration=case.is_probe or bool(case.explored),
        reason=Reason.PROBE if case.is_probe else Reason.AHEAD,
        is_within_reach=case.is_within_reach,
        chosen=case.candidate or LARGEST,
    )
    history.requests.append(request)
    if not case.has_ended:
        return
    served = served_call_id(request.request_id)
    history.calls.append(_call(request, served, CallRole.SERVED, case.candidate, case.cost))
    history.labels += [_label(request, served, value, place) for place, value in
                       enumerate(case.verdicts)]  # fmt: skip
    if case.judged is not None:
        label = _label(request, served, case.judged, 0)
        history.labels.append(
            replace(label, label_id=f"{served}-judge", kind=LabelKind.JUDGE, source="judge")
        )
        grading = replace(GRADING, grading_id=f"{served}-grading", request_id=request.request_id)
        history.gradings.append(grading)
    if case.checked is not None:
        label = _label(request, served, case.checked, 0)
        weak = replace(label, kind=LabelKind.CHECK, source="check:own", weight=0.3)
        history.labels.append(replace(weak, label_id=f"{served}-check"))
    for place, (candidate, value) in enumerate(case.explored.items(), start=1):
        call_id = exploration_call_id(request.request_id, place)
        cost = COSTS[candidate]
        history.calls.append(_call(request, call_id, CallRole.EXPLORATION, candidate, cost))
        history.labels.append(_label(request, call_id, value, 0))


def seeded() -> History:
    """600 requests to `default`, 40 to `gold`, which is beyond every candidate's reach. A judge
    and a check speak of some of `default`."""
    history = History()
    for number in range(600):
        satisfied = float(number % 10 < 8)
        if number % 20 == 0:
            explored = {CANDIDATES[1]: 1.0, SMALL: float(number % 40 == 0)}
            add(history, Case(LARGEST, (1.0,), explored=explored))
        elif number % 20 == 7:
            add(history, Case(CANDIDATES[1], (1.0 - satisfied, satisfied)))
        elif number % 20 == 9:
            add(history, Case(None, (), cost=None))  # a fallback outside, without a price
        else:
            given = (satisfied,) if number % 5 else ()
            judged = 1.0 - satisfied if number % 40 == 3 else satisfied
            add(
                history,
                Case(
                    SMALL,
                    given,
                    is_probe=number % 9 == 0,
                    judged=judged if number % 2 else None,
                    checked=0.0 if number % 20 == 10 else None,
                ),
            )
        if number % 15 == 0:
            add(history, Case(LARGEST, (0.5,), level="gold", is_within_reach=False))
    add(history, Case(has_ended=False))
    return history


def _call(
    request: RequestRecord, call_id: str, role: CallRole, candidate: str | None, cost: float | None
) -> CallRecord:
    source = CostSource.UNKNOWN if cost is None else CostSource.MEASURED
    return replace(
        CALL, call_id=call_id, request_id=request.request_id, role=role, candidate=candidate,
        status=CallStatus.SUCCESS, cost=cost, cost_source=source, error=None,
    )  # fmt: skip


def _label(request: RequestRecord, call_id: str, value: float, place: int) -> LabelRecord:
    return replace(
        LABEL, label_id=f"{call_id}-{place}", call_id=call_id, request_id=request.request_id,
        value=value,
    )  # fmt: skip
