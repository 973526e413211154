"""One log with everything in it: some 510 requests of four zoos over the three days before now.

`zoo` is routed, with conversations that are held, gates, explorations, energy and
labels of every kind that also tie; `other` is a canary; of `quiet` the router only watches.
Failures, cached answers and fallbacks are among them. `down` has failures of every cause: it is
out since some minutes.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import cycle
from random import Random
from typing import Any

from litellm_messplus import records as of
from litellm_messplus.core.decision import Reason
from litellm_messplus.records import CallRecord, Record, RequestRecord
from litellm_messplus.runtime.vocabulary import (
    CallStatus,
    Change,
    Failure,
    LabelKind,
)
from litellm_messplus.switching.modes import Arm
from tests.support import builders, summing
from tests.support.builders import LARGE, MEDIUM, SMALL, label, served_call, with_columns

COUNT = 200
"""Requests of each of two zoos; the others have 60 and 45."""
SPAN = timedelta(days=3)
OUT = timedelta(minutes=4)
COSTS = {SMALL: 1.0, MEDIUM: 3.0, LARGE: 5.5}
KEYS = ("0aa", "1bb", "2cc", "3dd")
WHEN: dict[type[Any], tuple[str, int]] = {
    RequestRecord: ("created_at", 0),
    CallRecord: ("ended_at", 2),
    of.LabelRecord: ("created_at", 20),
    of.GradingRecord: ("created_at", 20),
}
"""When it is, in seconds after the decision."""
Group = list[Record]
"""A request, with what happened to it."""


def seeded(now: datetime) -> list[Record]:
    """Return the log; its newest request is of a minute ago."""
    zoos = [*_routed_and_canary(), list(_watched()), list(_up())]
    span = SPAN - timedelta(minutes=5)
    dated = [
        (now - SPAN + span * (number + place / len(zoos)) / len(zoo), group)
        for place, zoo in enumerate(zoos)
        for number, group in enumerate(zoo)
    ]
    dated += [(now - OUT + number * timedelta(seconds=8), each) for number, each in _down()]
    dated.sort(key=lambda each: each[0])
    return [*_changes(now), *(record for at, group in dated for record in _at(at, group))]


def _routed_and_canary() -> list[list[Group]]:
    groups: dict[str, Group] = {}
    for record in summing.eventful(COUNT, 11):
        groups.setdefault(str(getattr(record, "request_id")), []).append(record)  # noqa: B009
    found: dict[str, list[Group]] = {"zoo": [], "other": []}
    for group in groups.values():
        request = next(each for each in group if isinstance(each, RequestRecord))
        own = found[request.zoo]
        place = group.index(request)
        vary = _routed if request.zoo == "zoo" else _canary
        group[place] = vary(_asked(request, group, len(own)), len(own))
        group.insert(0, group.pop(place))
        own.append([*group, *_ties(request.request_id, len(own))])
    return list(found.values())


def _asked(request: RequestRecord, group: Group, number: int) -> RequestRecord:
    """Say who asked what, and have chosen what served."""
    calls = [each for each in group if isinstance(each, CallRecord) and each.role == "served"]
    random, key = Random(number), KEYS[number % 7 % 4]
    is_named = number % 3 > 0
    return with_columns(
        request,
        chosen=calls[0].candidate or LARGE,
        policy="adaptive",
        queue=round(random.uniform(-3.0, 4.0), 3),
        reason=random.choice([Reason.AHEAD, Reason.BEHIND, Reason.PROBE]),
        price=round(random.uniform(0.5, 9.0), 3),
        aim=request.alpha + 0.01,
        propensity=random.choice([0.95, 0.6, 0.05]),
        exploration_calls=sum(isinstance(each, CallRecord) for each in group) - 1,
        is_within_reach=number % 11 > 0,
        label_probability=0.25 if number % 4 == 0 else None,
        estimated_cost=COSTS,
        estimated_satisfaction={SMALL: 0.55, MEDIUM: 0.7, LARGE: 0.9 - number / 1000},
        key_hash=f"{key}{'e3b0c44298fc' * 5}",
        key_alias=f"team {key}" if is_named else None,
        user_id=f"user-{number % 5}" if is_named else None,
        end_user=f"client-{number % 3}" if number % 6 == 1 else None,
        tags=("batch", key) if number % 6 == 2 else None,
        prompt="Why is the sky blue, and not violet?" if number % 10 == 0 else None,
        is_stream=number % 5 == 0,
    )


def _routed(request: RequestRecord, number: int) -> RequestRecord:
    """Hold the second and third of three requests of the same level, as a conversation."""
    if number % 8 > 2:
        return request
    first, held = f"zoo{number - number % 8 + 1}", ("tool_loop", "warm")[number % 2]
    known: dict[str, Any] = {"conversation": first, "line": first, "prefix": f"{number:032x}"}
    if number % 8 == 0:
        return with_columns(request, turn=1, **known)
    return with_columns(request, turn=1 + number % 8, reason=Reason.HELD, hold=held, **known)


def _canary(request: RequestRecord, number: int) -> RequestRecord:
    """Route a third, and serve the others as before."""
    draw = round(Random(number).random(), 6)
    if draw < 0.33:
        return with_columns(request, conversation_draw=draw)
    return _before(request, LARGE, number, draw)


def _before(request: RequestRecord, chosen: str, number: int, draw: float) -> RequestRecord:
    decided = number % 9 > 0
    return with_columns(
        request,
        arm=Arm.BEFORE,
        service_level=f"{request.service_level}:before",
        chosen=chosen,
        reason=Reason.AHEAD if decided else Reason.UNDECIDED,
        would_choose=(SMALL, MEDIUM)[number % 2] if decided else None,
        would_cost=1.5 + number % 2 if decided else None,
        sample_probability=0.5 if request.exploration_calls else None,
        conversation_draw=draw,
    )


def _ties(request_id: str, number: int) -> Iterator[Record]:
    """Two checks that say the same at different weights, one of which speaks again."""
    if number % 20 != 3:
        return
    for place, (source, weight) in enumerate([("a", 1.0), ("b", 0.3), ("a", 0.5)]):
        tie = label(request_id, 0.0, label_id=f"{request_id}-tie-{place}", weight=weight)
        yield replace(tie, kind=LabelKind.CHECK, source=f"check:{source}")


def _watched() -> Iterator[Group]:
    for number in range(60):
        name = f"quiet{number}"
        asked = with_columns(builders.request(name), zoo="quiet", policy="adaptive")
        plain = with_columns(asked, chosen=SMALL, is_exploration=False)
        group = [_asked(plain, [served_call(name, candidate=SMALL)], number)]
        before = _before(group[0], "litellm", number, 0.5)
        candidate = (SMALL, LARGE)[number % 2]
        call = served_call(name, candidate=candidate, cost=COSTS[candidate])
        labels = [label(name, float(number % 5 > 0))] if number % 2 else []
        yield [before, call, *labels]


def _up() -> Iterator[Group]:
    for number in range(20):
        name = f"up{number}"
        asked = _asked(
            with_columns(builders.request(name), zoo="down"), [served_call(name)], number
        )
        yield [asked, served_call(name), label(name, float(number % 4 > 0))]


def _down() -> Iterator[tuple[int, Group]]:
    """An outage: everything fails, of whom in turn."""
    for number, failure in zip(range(25), cycle(Failure)):
        name = f"down{number}"
        has_called = failure is not Failure.NO_DEPLOYMENT
        candidate, error = SMALL if has_called else None, f"Error: {failure}"
        call = served_call(name, candidate=candidate, cost=None, completion_tokens=None)
        call = replace(call, status=CallStatus.FAILURE, failure=failure, error=error)
        asked = _asked(with_columns(builders.request(name), zoo="down"), [call], number)
        yield number, [asked, call]


def _at(moment: datetime, group: Group) -> Iterator[Record]:
    for record in group:
        name, seconds = WHEN[type(record)]
        changed: dict[str, Any] = {name: moment + timedelta(seconds=seconds)}
        yield replace(record, **changed)


def _changes(now: datetime) -> Iterator[Record]:
    """A model that comes, and one whose price changes."""
    at = now - SPAN
    for number, (name, change) in enumerate([(SMALL, Change.PRICED), ("tiny", Change.APPEARED)]):
        price = {"prompt": 0.0, "completion": 0.005 + number / 1000}
        yield of.CandidateRecord(f"event-{name}", "zoo", name, at, change, price)
