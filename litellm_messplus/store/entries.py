"""Reading the log back as entries of the fold.

An entry at a position says only what was known at that position: a label that came before its
call ended has no candidate yet, and the call's own entry brings the label along. So a log read in
one piece, or in many, at any later time, folds into the same state. Which of a call's labels
counts is not decided here: entries bring the newest of each source that was known."""

from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
from sqlalchemy import Row, Select, and_, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.conversations.account import Shares
from litellm_messplus.prediction.encoder import Features
from litellm_messplus.prediction.surface import VERSION, Surface
from litellm_messplus.records import (
    CallRecord,
    CandidateRecord,
    LabelRecord,
    LessonRecord,
    Record,
    RequestRecord,
    is_forced,
    request_of,
)
from litellm_messplus.routing.decision import Reason
from litellm_messplus.state.entries import (
    Decided,
    Entry,
    Example,
    FailedCall,
    Given,
    Labelled,
    LimitedCall,
    Settled,
    Taught,
)
from litellm_messplus.state.limits import expected_use, is_late
from litellm_messplus.store.candidates import changes_in
from litellm_messplus.store.conversations import Courses
from litellm_messplus.store.log import features_from_bytes, logged_surface
from litellm_messplus.store.tables import calls, labels, lessons, requests
from litellm_messplus.store.verdicts import StandingLabels, given
from litellm_messplus.switching.modes import Arm
from litellm_messplus.vocabulary import CallRole, CallStatus

PAGE = 500
"""Positions read at once, which bounds the memory that a long log takes, and how long the event
loop is kept: with 2,000 it was 40 ms."""


Kinds = Collection[type[Record]]
EVERY_KIND: Kinds = (RequestRecord, CallRecord, LabelRecord, LessonRecord, CandidateRecord)


async def read_entries(
    engine: AsyncEngine, after: int, upto: int, kinds: Kinds = EVERY_KIND
) -> AsyncIterator[Entry]:
    """Yield the entries at positions in (after, upto], in order; ``kinds`` are those that are
    there."""
    async with engine.connect() as connection:
        for start in range(after, upto, PAGE):
            for entry in await _page(connection, start, min(start + PAGE, upto), kinds):
                yield entry


async def _page(connection: AsyncConnection, after: int, upto: int, kinds: Kinds) -> list[Entry]:
    entries: list[Entry] = []
    if RequestRecord in kinds:
        found = await connection.execute(_decided_query(after, upto))
        entries += [decided(row, row.position) for row in found]
    if LessonRecord in kinds:
        in_page = (lessons.c.position > after, lessons.c.position <= upto)
        found = await connection.execute(select(lessons).where(*in_page))
        entries += [_taught(row) for row in found]
    if CandidateRecord in kinds:
        entries += await changes_in(connection, after, upto)
    entries += await _judged(connection, after, upto, kinds)
    entries.sort(key=lambda entry: entry.position)
    return entries


async def _judged(
    connection: AsyncConnection, after: int, upto: int, kinds: Kinds
) -> list[Settled | Labelled]:
    """Read calls and labels, each with the labels that came before it."""
    ended: Sequence[Row[Any]] = ()
    said: Sequence[Row[Any]] = ()
    if CallRecord in kinds:
        ended = (await connection.execute(_settled_query(after, upto))).all()
    if LabelRecord in kinds:
        said = (await connection.execute(_label_query(after, upto))).all()
    if not ended and not said:
        return []
    standing = await StandingLabels.read(connection, after, upto)
    courses = Courses()
    if said or len(standing):
        courses = await Courses.read(connection, after, upto)
    labelled = {row.position for row in said}
    entries: list[Settled | Labelled] = []
    for row in sorted((*ended, *said), key=lambda row: row.position):
        earlier = standing.of(row.call_id)
        if row.position in labelled:
            entries.append(_labelled(row, earlier, courses.shares(row)))
            standing.add(row.call_id, given(row))
        else:
            entries.append(_settled(row, () if courses.have_taught(row) else earlier))
    return entries


def _decided_query(after: int, upto: int) -> Select[Any]:
    return select(
        requests.c.position,
        requests.c.zoo,
        requests.c.service_level,
        requests.c.request_id,
        requests.c.created_at,
        requests.c.exploration_calls,
        requests.c.aim,
        requests.c.expected_satisfaction,
        requests.c.label_probability,
        requests.c.counted_with,
        requests.c.reason,
        requests.c.limits,
    ).where(requests.c.position > after, requests.c.position <= upto)


def decided(request: Any, position: int) -> Decided:
    """Make the entry of a request, from its record or from a row."""
    shortfall = 0.0
    if request.aim is not None and request.expected_satisfaction is not None:
        shortfall = request.aim - request.expected_satisfaction
    return Decided(
        position=position,
        zoo=request.zoo,
        service_level=request.service_level,
        request_id=request.request_id,
        expected_shortfall=shortfall,
        calls=1 + (request.exploration_calls or 0),
        at=request.created_at.timestamp(),
        is_bought=request.label_probability is not None,
        counted_with=request.counted_with,
        is_held=request.reason in (Reason.HELD, Reason.DEADLINE_MISSED),
        expected_use=expected_use(request.limits),
    )


def _settled_query(after: int, upto: int) -> Select[Any]:
    return (
        select(
            calls.c.position,
            calls.c.call_id,
            calls.c.request_id,
            calls.c.role,
            calls.c.status,
            calls.c.is_cache_hit,
            calls.c.candidate,
            calls.c.prompt_tokens,
            calls.c.completion_tokens,
            calls.c.seconds,
            calls.c.cost,
            requests.c.zoo,
            requests.c.service_level,
            requests.c.alpha,
            requests.c.aim,
            requests.c.label_probability,
            requests.c.created_at,
            requests.c.limits,
            requests.c.prompt_characters,
            requests.c.encoder,
            requests.c.features,
            requests.c.surface,
            requests.c.surface_version,
            requests.c.is_exploration,
            requests.c.eligible,
        )
        .join(requests, requests.c.request_id == calls.c.request_id)
        .where(calls.c.position > after, calls.c.position <= upto)
    )


def _settled(found: Row[Any], earlier: tuple[Given, ...]) -> Settled:
    return settled(found, found, _features(found), found.position, earlier)


def settled(
    call: Any,
    request: Any,
    features: Features | None,
    position: int,
    earlier: tuple[Given, ...] = (),
) -> Settled:
    """Make the entry of a call and its request, from their records, or from both as one row."""
    used = _is_new(call)
    return Settled(
        position=position,
        zoo=request.zoo,
        call_id=call.call_id,
        candidate=call.candidate,
        prompt_characters=request.prompt_characters,
        prompt_tokens=call.prompt_tokens if used else None,
        completion_tokens=call.completion_tokens if used else None,
        example=_example(call.candidate, request, features) if used else None,
        given=earlier,
        seconds=call.seconds if used else None,
        limited=None if request.limits is None else _limited(call, request),
        failed=_failed(call, request) if call.status == CallStatus.FAILURE else None,
    )


def _failed(call: Any, request: Any) -> FailedCall:
    return FailedCall(
        request.service_level,
        call.request_id,
        request.alpha if request.aim is None else request.aim,
        is_served=call.role == CallRole.SERVED,
        is_bought=request.label_probability is not None,
    )


def _limited(call: Any, request: Any) -> LimitedCall:
    return LimitedCall(
        request.service_level,
        call.request_id,
        request.created_at.timestamp(),
        call.role == CallRole.SERVED,
        is_late(
            request.limits,
            call.seconds,
            is_answered=call.status == CallStatus.SUCCESS,
            is_repeated=call.is_cache_hit,
        ),
        call.cost,
    )


def _is_new(call: Any) -> bool:
    """Tell whether a model answered, and LiteLLM's cache did not repeat an answer: that taught when
    it was new. Of a call that has not ended, nobody knows yet."""
    return bool(call.status == CallStatus.SUCCESS and not call.is_cache_hit)


def _label_query(after: int, upto: int) -> Select[Any]:
    """Query labels, each with its call, if that had ended by then."""
    ended = and_(calls.c.call_id == labels.c.call_id, calls.c.position < labels.c.position)
    return (
        select(
            labels.c.position,
            labels.c.kind,
            labels.c.source,
            labels.c.value,
            labels.c.weight,
            labels.c.probability,
            labels.c.call_id,
            labels.c.request_id,
            calls.c.role,
            calls.c.status,
            calls.c.is_cache_hit,
            calls.c.candidate,
            requests.c.zoo,
            requests.c.service_level,
            func.coalesce(requests.c.aim, requests.c.alpha).label("alpha"),
            requests.c.encoder,
            requests.c.features,
            requests.c.surface,
            requests.c.surface_version,
            requests.c.is_exploration,
            requests.c.label_probability,
            requests.c.eligible,
            requests.c.arm,
            requests.c.chosen,
            requests.c.would_choose,
            requests.c.sample_probability,
        )
        .join(requests, requests.c.request_id == labels.c.request_id)
        .outerjoin(calls, ended)
        .where(labels.c.position > after, labels.c.position <= upto)
    )


def _labelled(found: Row[Any], earlier: tuple[Given, ...], shares: Shares) -> Labelled:
    # Only the served call can be labelled before it has ended: its id is known from the start.
    is_served = found.role in (None, CallRole.SERVED)
    is_sampled = found.arm == Arm.BEFORE and not is_served
    sampled = partial(_sampled, probability=found.sample_probability if is_sampled else None)
    author = found.candidate if _is_new(found) else None
    if author is None and shares:  # the first turn failed, and the conversation went on
        author = shares[0][0]
    return Labelled(
        position=found.position,
        zoo=found.zoo,
        service_level=found.service_level,
        request_id=found.request_id,
        call_id=found.call_id,
        alpha=found.alpha,
        is_served=is_served,
        given=sampled(given(found)),
        earlier=tuple(map(sampled, earlier)),
        example=_example(author, found, _features(found)) if author is not None else None,
        is_bought=found.label_probability is not None,
        is_forced=is_forced(found.eligible),
        of_choice=_of_choice(found, is_served) if found.arm == Arm.BEFORE else None,
        shares=shares,
        is_failed=found.status == CallStatus.FAILURE and not shares,
    )


def _sampled(label: Given, probability: float | None) -> Given:
    """Weigh a label on a call that was itself drawn."""
    if probability is None:
        return label
    return label._replace(probability=(label.probability or 1.0) * probability)


def _of_choice(found: Row[Any], is_served: bool) -> bool:
    """Tell of a request that was served as before whether the label is on an answer of the model
    that the router would have chosen. Where that was called unseen, the served one does not count
    too."""
    candidate = found.candidate or (found.chosen if is_served else None)
    if candidate is None or candidate != found.would_choose:
        return False
    return not is_served or found.sample_probability is None or found.chosen == candidate


def _taught(found: Row[Any]) -> Taught:
    return Taught(
        position=found.position,
        zoo=found.zoo,
        batch=found.batch,
        lesson_id=found.lesson_id,
        example=Example(
            request_id=request_of(found.lesson_id),
            encoder=found.encoder,
            features=_features(found),
            candidate=found.candidate,
            is_exploration=False,
            surface=_surface(found),
        ),
        prompt_characters=found.prompt_characters,
        completion_tokens=found.completion_tokens,
        value=found.value,
    )


def _features(found: Row[Any]) -> Features | None:
    return None if found.features is None else features_from_bytes(found.features)


def _surface(found: Any) -> Surface | None:
    """Return the surface as it was logged; a record that was not written yet has the numbers
    themselves."""
    if isinstance(found.surface, np.ndarray):
        return found.surface if found.surface_version == VERSION else None
    return logged_surface(found.surface, found.surface_version)


def _example(candidate: str | None, request: Any, features: Features | None) -> Example | None:
    if candidate is None:
        return None
    return Example(
        request_id=request.request_id,
        encoder=request.encoder,
        features=features,
        candidate=candidate,
        is_exploration=bool(request.is_exploration),
        surface=_surface(request),
        is_forced=is_forced(request.eligible),
    )
