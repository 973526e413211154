"""Reading the log back as entries of the fold.

An entry holds only what was known at its position: a label logged before its call ended has no
candidate yet, and the call's own entry carries the label. So a log read in one piece or in many, at
any later time, folds into the same state. Which of a call's labels counts is not decided here:
entries carry the newest known label of each source."""

from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Column, Row, Select, Table, and_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.core.answer import AnswerSurface
from litellm_messplus.core.answer_heads import Turn
from litellm_messplus.core.catalog import price_of
from litellm_messplus.core.encoder import Features
from litellm_messplus.core.entries import (
    CandidateChanged,
    Decided,
    Entry,
    Example,
    FailedCall,
    Labelled,
    Settled,
)
from litellm_messplus.core.held import Gated
from litellm_messplus.core.predictor import Before
from litellm_messplus.core.surface import Surface
from litellm_messplus.core.verdict import Given
from litellm_messplus.figures.tally import taken
from litellm_messplus.records import (
    CallRecord,
    CandidateRecord,
    GradingRecord,
    LabelRecord,
    Record,
    RequestRecord,
    request_of,
)
from litellm_messplus.rows import columns_of, facet, rebuilt, without_words
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.vocabulary import CallRole, CallStatus, Change
from litellm_messplus.store.first_answers import Remembered, before_in, with_before
from litellm_messplus.store.rows import features_from_bytes, logged_answer, logged_surface
from litellm_messplus.store.standing import StandingLabels, given
from litellm_messplus.store.tables import calls, candidate_events, labels, requests
from litellm_messplus.switching.modes import Trial

PAGE = 500
"""Positions read at once: bounds the memory for a long log, and the time that the event loop is
blocked (40 ms with 2,000)."""


Kinds = Collection[type[Record]]
EVERY_KIND: Kinds = (RequestRecord, CallRecord, LabelRecord, CandidateRecord)


async def read_entries(
    engine: AsyncEngine, after: int, upto: int, kinds: Kinds = EVERY_KIND
) -> AsyncIterator[Entry]:
    """Yield the entries at positions in (after, upto], in order; ``kinds`` are the kinds of records
    to read."""
    async with engine.connect() as connection:
        for start in range(after, upto, PAGE):
            for entry in await _page(connection, start, min(start + PAGE, upto), kinds):
                yield entry


async def _page(connection: AsyncConnection, after: int, upto: int, kinds: Kinds) -> list[Entry]:
    entries: list[Entry] = []
    if RequestRecord in kinds:
        found = await connection.execute(_decided_query(after, upto))
        entries += [decided(row, row.position) for row in found]
    if CandidateRecord in kinds:
        entries += [_changed(row) for row in await _rows(connection, candidate_events, after, upto)]
    entries += await _judged(connection, after, upto, kinds)
    entries.sort(key=lambda entry: entry.position)
    return entries


async def _rows(
    connection: AsyncConnection, table: Table, after: int, upto: int
) -> Sequence[Row[Any]]:
    in_page = (table.c.position > after, table.c.position <= upto)
    return (await connection.execute(select(table).where(*in_page))).all()


async def _judged(
    connection: AsyncConnection, after: int, upto: int, kinds: Kinds
) -> list[Settled | Labelled]:
    """Read calls and labels, each with the earlier labels on its call."""
    ended: Sequence[Row[Any]] = ()
    label_rows: Sequence[Row[Any]] = ()
    if CallRecord in kinds:
        ended = (await connection.execute(_settled_query(after, upto))).all()
    if LabelRecord in kinds:
        label_rows = (await connection.execute(_label_query(after, upto))).all()
    if not ended and not label_rows:
        return []
    standing = await StandingLabels.read(connection, after, upto)
    of_labels = {row.position for row in label_rows}
    entries: list[Settled | Labelled] = []
    for row in sorted((*ended, *label_rows), key=lambda row: row.position):
        earlier = standing.of(row.call_id)
        if row.position in of_labels:
            call = None if row.status is None else row
            trial = rebuilt(Trial, row._mapping)
            entries.append(labelled(row, row, trial, call, row.position, earlier, before_in(row)))
            standing.add(row.call_id, given(row))
        else:
            entries.append(settled(row, row, row.position, earlier, before_in(row)))
    return entries


def _of(table: Table, *names: str) -> list[Column[Any]]:
    return [table.c[name] for name in names]


def _facet(kind: type) -> list[Column[Any]]:
    """Return the columns of requests that hold a facet."""
    return _of(requests, *(each.name for each in columns_of(kind)))


PROMPT = ("encoder", "features", "surface", "surface_version", "is_exploration")
"""The columns of a request that make an example, in addition to the `Gated` facet."""
ANSWER = ("answer_surface", "answer_version")
"""The columns of a call that do."""


def _decided_query(after: int, upto: int) -> Select[Any]:
    return select(
        *_of(requests, "position", "zoo", "service_level", "request_id", "created_at", "reason"),
        *_of(requests, "exploration_calls", "aim", "expected_satisfaction", "label_probability"),
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
    )


def _settled_query(after: int, upto: int) -> Select[Any]:
    query = (
        select(
            *_of(calls, "position", "call_id", "request_id", "role", "status", "is_cache_hit"),
            *_of(calls, "candidate", "prompt_tokens", "completion_tokens", "seconds", "cost"),
            *_of(calls, *ANSWER),
            *_of(requests, "zoo", "service_level", "prompt_characters"),
            *_of(requests, "alpha", "aim", "label_probability", *PROMPT),
            *_facet(Gated),
        )
        .join(requests, requests.c.request_id == calls.c.request_id)
        .where(calls.c.position > after, calls.c.position <= upto)
    )
    return with_before(query, calls)


def settled(
    call: Any,
    request: Any,
    position: int,
    earlier: tuple[Given, ...] = (),
    before: Before | None = None,
) -> Settled:
    """Make the entry of a call and its request, from their records, or from both as one row;
    ``before`` is the answer that came before the call's."""
    used = _is_new(call)
    return Settled(
        position=position,
        zoo=request.zoo,
        call_id=call.call_id,
        candidate=call.candidate,
        prompt_characters=request.prompt_characters,
        prompt_tokens=call.prompt_tokens if used else None,
        completion_tokens=call.completion_tokens if used else None,
        example=_example(call.candidate, request, call.role, _answer(call), before)
        if used
        else None,
        given=earlier,
        seconds=call.seconds if used else None,
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


def _is_new(call: Any) -> bool:
    """Tell whether a model wrote the answer, not LiteLLM's cache: a repeated answer taught when it
    was new. False for a call that has not ended."""
    return bool(call.status == CallStatus.SUCCESS and not call.is_cache_hit)


def _label_query(after: int, upto: int) -> Select[Any]:
    """Query labels, each with its call if that had ended before the label."""
    ended = and_(calls.c.call_id == labels.c.call_id, calls.c.position < labels.c.position)
    query = (
        select(
            *_of(labels, "position", "kind", "source", "value", "weight", "probability"),
            *_of(labels, "call_id", "request_id"),
            *_of(calls, "role", "status", "is_cache_hit", "candidate", *ANSWER),
            *_of(requests, "alpha", "aim", "zoo", "service_level", "label_probability", "chosen"),
            *_of(requests, *PROMPT),
            *_facet(Gated),
            *_facet(Trial),
        )
        .join(requests, requests.c.request_id == labels.c.request_id)
        .outerjoin(calls, ended)
        .where(labels.c.position > after, labels.c.position <= upto)
    )
    return with_before(query, labels)


def labelled(
    label: Any,
    request: Any,
    trial: Trial,
    call: Any,
    position: int,
    earlier: tuple[Given, ...] = (),
    before: Before | None = None,
) -> Labelled:
    """Make the entry of a label, its request with its ``trial``, and its call, None if that had not
    ended; from their records, or from all as one row."""
    role = None if call is None else call.role
    # Only the served call can be labelled before it has ended: its id is known from the start.
    is_served = role in (None, CallRole.SERVED)
    gated, candidate = _gated(request), None if call is None else call.candidate
    sampled = partial(_sampled, probability=trial.drawn(is_served=is_served))
    is_new = call is not None and _is_new(call)
    example = _example(candidate, request, role, _answer(call), before) if is_new else None
    return Labelled(
        position=position,
        zoo=request.zoo,
        service_level=request.service_level,
        request_id=label.request_id,
        call_id=label.call_id,
        alpha=request.alpha if request.aim is None else request.aim,
        is_served=is_served,
        given=sampled(given(label)),
        earlier=tuple(map(sampled, earlier)),
        example=example,
        is_bought=request.label_probability is not None or role == CallRole.REPLACED,
        is_forced=gated is not None and gated.is_forced,
        of_choice=trial.is_of_choice(candidate, chosen=request.chosen, is_served=is_served),
        is_failed=call is not None and call.status == CallStatus.FAILURE,
    )


def _sampled(label: Given, probability: float | None) -> Given:
    """Multiply a label's sampling probability by that with which its call was drawn."""
    if probability is None:
        return label
    return label._replace(probability=(label.probability or 1.0) * probability)


def _changed(found: Row[Any]) -> CandidateChanged:
    at, change = found.created_at.timestamp(), Change(found.change)
    return taken(CandidateChanged, found, change=change, price=price_of(found.price), at=at)


def _example(
    candidate: str | None,
    request: Any,
    role: CallRole | None,
    answer: AnswerSurface | None,
    before: Before | None,
) -> Example | None:
    if candidate is None:
        return None
    gated = _gated(request)
    return Example(
        request_id=request.request_id,
        encoder=request.encoder,
        features=_features(request),
        candidate=candidate,
        is_exploration=bool(request.is_exploration),
        surface=_surface(request),
        is_forced=gated is not None and gated.is_forced,
        answer=answer,
        before=before,
        turn=_turn(role, before),
    )


def _turn(role: CallRole | None, before: Before | None) -> Turn:
    """Tell whether an answer was replaced, or given instead of another one."""
    if role == CallRole.REPLACED:
        return Turn.REPLACED
    is_second = before is not None and role in (None, CallRole.SERVED)
    return Turn.SECOND if is_second else Turn.ONLY


# A record that was just written holds these as Python values, a row as the database stores them.


def _gated(request: Any) -> Gated | None:
    if isinstance(request, RequestRecord):
        return request.gated
    return facet(Gated, request._mapping)


def _features(found: Any) -> Features | None:
    is_row = isinstance(found.features, bytes)
    return features_from_bytes(found.features) if is_row else found.features


def _surface(found: Any) -> Surface | None:
    return logged_surface(found.surface, found.surface_version)


def _answer(call: Any) -> AnswerSurface | None:
    return logged_answer(call.answer_surface, call.answer_version)


# Entries of the records that this process wrote. Reading them back took the event loop nearly as
# long as writing; it is skipped when the entries must equal those of `read_entries`, which a test
# checks.

REMEMBERED = 4096
"""The number of newest requests kept; what is about an older one is read back."""


class RecentRequests:
    """Requests written by this process, with their calls and labels."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._requests: Bounded[str, Remembered] = Bounded(remembered)

    def entries(self, records: Sequence[Record], before: int) -> list[Entry] | None:
        """Make the entries of records at the positions after ``before``; None if the log must be
        read, as one is about a request that is not remembered. All others are, from now on."""
        found, is_known = list[Entry](), True
        for position, record in enumerate(records, start=before + 1):
            if isinstance(record, GradingRecord):  # no part of the fold
                continue
            if (entry := self._entry(record, position)) is None:
                is_known = False
            else:
                found.append(entry)
        return found if is_known else None

    def _entry(
        self, record: RequestRecord | CallRecord | LabelRecord | CandidateRecord, position: int
    ) -> Entry | None:
        if isinstance(record, RequestRecord):
            self._requests[record.request_id] = Remembered(without_words(record))
            return decided(record, position)
        if isinstance(record, CandidateRecord):
            return None
        known = self._requests.get(record.request_id)
        if known is None:
            return None
        call_id, earlier = record.call_id, known.labels.of(record.call_id)
        if isinstance(record, CallRecord):
            known.calls[call_id] = without_words(record)
            before = known.before(call_id, record.role)
            return settled(record, known.request, position, earlier, before)
        call = known.calls.get(call_id)
        before = known.before(call_id, None if call is None else call.role)
        known.labels.add(call_id, given(record))
        trial = known.request.trial
        return labelled(record, known.request, trial, call, position, earlier, before)

    def forget(self, entry: Entry) -> None:
        """Forget the request of an entry by another process: the log knows more of it."""
        if isinstance(entry, Settled | Labelled):
            self._requests.pop(request_of(entry.call_id), None)
