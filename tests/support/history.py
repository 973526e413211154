"""A small history with known answers, in a real database made by the migrations."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from litellm_messplus.core.decision import Reason
from litellm_messplus.core.head import Label
from litellm_messplus.core.verdict import Given, Rule
from litellm_messplus.records import (
    Asker,
    CallRecord,
    GradingRecord,
    LabelRecord,
    Names,
    Record,
    RequestRecord,
    exploration_call_id,
    served_call_id,
)
from litellm_messplus.runtime.vocabulary import (
    CallRole,
    CallStatus,
    CostSource,
    Failure,
    GradingStatus,
    LabelKind,
)
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate

ZOO = "llama"
JUDGE = "gpt-judge"
# With a dot and a slash, as real models are named: an estimate must still be found by it.
SMALL, MIDDLE, LARGEST = "vllm/Llama-3.2-1B", "vllm/Llama-3.1-8B", "vllm/Llama-3.3-70B"
CANDIDATES = (SMALL, MIDDLE, LARGEST)
COST = {SMALL: 0.001, MIDDLE: 0.01, LARGEST: 0.1}
FALLBACK_COST = 0.02
PREDICTED = {SMALL: 0.42, MIDDLE: 0.68, LARGEST: 0.91}
ALPHA = {"default": 0.6, "gold": 0.9}
FIRST_DAY = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
REQUESTS = 48
DAYS = 3
CALL_SECONDS = 0.5
ENCODE_SECONDS = 0.02
GRADING_COST = 0.0005
NAMES = Names(key_alias="ada", user_id="lovelace", tags=("search", "beta"))
LATE = (7, 31)
"""Numbers of the requests whose features came too late."""


@dataclass
class History:
    """Everything that was written, in the order of the log."""

    requests: list[RequestRecord] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    labels: list[LabelRecord] = field(default_factory=list)
    gradings: list[GradingRecord] = field(default_factory=list)

    def records(self) -> list[Record]:
        """Requests, then calls, then labels: any order in which a log may have them will do."""
        return [*self.requests, *self.calls, *self.labels, *self.gradings]

    def served(self, request: RequestRecord) -> CallRecord:
        return self.calls_of(request)[0]

    def calls_of(self, request: RequestRecord) -> list[CallRecord]:
        """The served call first."""
        return [call for call in self.calls if call.request_id == request.request_id]

    def verdict(self, call_id: str) -> Label | None:
        """The label of a call that counts, by the rule of the fold."""
        labels = [label for label in self.labels if label.call_id == call_id]
        return Rule().verdict([Given(x.kind, x.source, x.value, x.weight) for x in labels])

    def verdicts(self, level: str) -> list[Label]:
        """Those that count towards the promise of a level."""
        found = [
            self.verdict(served_call_id(request.request_id))
            for request in self.requests
            if request.service_level == level
        ]
        return [label for label in found if label is not None]

    def said(self, source: str, level: str | None = None) -> dict[str, float]:
        """What a source said at last of the served calls, by request."""
        served = {
            served_call_id(request.request_id)
            for request in self.requests
            if level in (None, request.service_level)
        }
        return {
            label.request_id: label.value
            for label in self.labels
            if label.source == source and label.call_id in served
        }

    def cost(self, request: RequestRecord) -> float:
        """Of all its calls."""
        return sum(call.cost or 0.0 for call in self.calls_of(request))


def make_history() -> History:
    """48 requests on three days: two service levels, two keys, every sixth an exploration, one
    failure, one fallback, one verdict that was changed, some without feedback. A check looked at
    each third, a judge at each fourth; of some without feedback only the next question speaks."""
    history = History()
    for number in range(REQUESTS):
        request = _request(number)
        history.requests.append(request)
        history.calls += _calls(number, request)
        history.labels += _labels(number, request, history)
        history.labels += _other_labels(number, request, history)
        if number % 4 == 1:
            history.gradings.append(_grading(number, request))
    changed = history.requests[1]
    history.labels.append(
        _label(changed, served_call_id(changed.request_id), 0.0, "at second look")
    )
    return history


def migrated(path: Path, history: History) -> None:
    """A new SQLite database with that history in it."""
    asyncio.run(write_history(f"sqlite+aiosqlite:///{path}", history))


async def write_history(url: str, history: History, *more: Callable[..., Awaitable[None]]) -> None:
    """Write it into the new database at the URL, and then what else writes there."""
    engine = create_engine(url)
    try:
        await migrate(engine)
        await log.append(engine, history.records())
        for write in more:
            await write(engine)
    finally:
        await engine.dispose()


def _request(number: int) -> RequestRecord:
    is_exploration = number % 6 == 0
    chosen = LARGEST if is_exploration else CANDIDATES[number % 3]
    level = "gold" if number % 3 == 2 else "default"
    return RequestRecord(
        request_id=f"request-{number:02}",
        created_at=FIRST_DAY + timedelta(days=number * DAYS // REQUESTS, minutes=number),
        zoo=ZOO,
        service_level=level,
        expected_t=number + 1,
        alpha=ALPHA[level],
        policy="paper",
        asker=Asker(
            litellm_call_id=f"call-{number}",
            key_hash="key-a" if number % 4 else "key-b",
            team_id="team" if number % 4 else None,
            call_type="acompletion",
            is_stream=number % 5 == 0,
        ),
        encoder="hashed-ngrams-3",
        features=None if number in LATE else np.full(4, number, dtype=np.float32),
        prompt_characters=10 + number,
        estimated_cost={name: 1.1 * cost for name, cost in COST.items()},
        estimated_satisfaction=PREDICTED,
        queue=0.1 * number,
        chosen=chosen,
        expected_satisfaction=PREDICTED[chosen],
        largest=LARGEST,
        is_exploration=is_exploration,
        exploration_probability=0.1,
        reason=Reason.EXPLORATION if is_exploration else Reason.NO_DEBT,
        decision_seconds=0.0001 * (number + 1),
        names=NAMES if number % 4 else None,
        encode_seconds=None if number in LATE else ENCODE_SECONDS,
    )


def _calls(number: int, request: RequestRecord) -> Iterator[CallRecord]:
    if number == 20:
        yield _call(request, 0, request.chosen, CallStatus.FAILURE)
    elif number == 21:  # a fallback outside the zoo
        yield _call(request, 0, None, CallStatus.SUCCESS)
    else:
        yield _call(request, 0, request.chosen, CallStatus.SUCCESS)
    if request.is_exploration:
        yield _call(request, 1, MIDDLE, CallStatus.SUCCESS)
        broken = number == 12
        yield _call(request, 2, SMALL, CallStatus.FAILURE if broken else CallStatus.SUCCESS)


def _call(
    request: RequestRecord, place: int, candidate: str | None, status: CallStatus
) -> CallRecord:
    succeeded = status is CallStatus.SUCCESS
    return CallRecord(
        call_id=exploration_call_id(request.request_id, place),
        request_id=request.request_id,
        ended_at=request.created_at + timedelta(seconds=place + 1),
        role=CallRole.EXPLORATION if place else CallRole.SERVED,
        status=status,
        candidate=candidate,
        deployment_id="deployment" if succeeded else None,
        model=candidate or "openai/backup",
        response_id=f"{request.request_id}-response-{place}",
        prompt_tokens=10 if succeeded else None,
        completion_tokens=5 if succeeded else None,
        cost=COST.get(candidate or "", FALLBACK_COST) if succeeded else None,
        cost_source=CostSource.MEASURED if succeeded else CostSource.UNKNOWN,
        seconds=CALL_SECONDS,
        error=None if succeeded else "Timeout: no answer",
        failure=None if succeeded else Failure.DEADLINE,
    )


def _labels(number: int, request: RequestRecord, history: History) -> Iterator[LabelRecord]:
    """On every answered request but each fifth, and on all calls of an exploration."""
    for call in history.calls_of(request):
        skipped = call.role is CallRole.SERVED and number % 5 == 4
        if call.status is CallStatus.SUCCESS and not skipped:
            # As satisfying as predicted, roughly: the largest most often.
            strength = CANDIDATES.index(call.candidate) if call.candidate else 0
            yield _label(request, call.call_id, float(number % 7 <= 2 * strength + 1))


def _other_labels(number: int, request: RequestRecord, history: History) -> Iterator[LabelRecord]:
    """Of a check, the judge and what the user did next, on the served call where it succeeded."""
    call = history.served(request)
    if call.status is CallStatus.FAILURE:
        return
    said: list[tuple[LabelKind, str, float, float]] = []
    if number % 3 == 0:
        said.append((LabelKind.CHECK, "check:complete", float(number % 2), 1.0))
    if number % 4 == 1 and number != 33:  # the answer to that one was nonsense
        agreed = history.said("feedback").get(request.request_id, 1.0)
        said.append((LabelKind.JUDGE, "judge", 1.0 - agreed if number == 13 else agreed, 1.0))
    for kind, source, value, weight in said:
        label = _label(request, call.call_id, value)
        label_id = f"{call.call_id}-{source}"
        yield replace(label, label_id=label_id, kind=kind, source=source, weight=weight)


def _grading(number: int, request: RequestRecord) -> GradingRecord:
    is_nonsense = number == 33
    return GradingRecord(
        grading_id=f"{request.request_id}-grading",
        request_id=request.request_id,
        created_at=request.created_at + timedelta(minutes=1),
        judge=JUDGE,
        status=GradingStatus.NONSENSE if is_nonsense else GradingStatus.GRADED,
        answers=1,
        cost=None if is_nonsense else GRADING_COST,
        prompt_tokens=300,
        completion_tokens=20,
        seconds=0.8,
        error="no JSON in the answer" if is_nonsense else None,
        zoo_cost=None if is_nonsense else GRADING_COST,
    )


def _label(
    request: RequestRecord, call_id: str, value: float, comment: str | None = None
) -> LabelRecord:
    given_at = request.created_at + timedelta(hours=2 if comment else 1)
    return LabelRecord(
        label_id=f"{call_id}-{'second' if comment else 'first'}",
        call_id=call_id,
        request_id=request.request_id,
        created_at=given_at,
        kind=LabelKind.FEEDBACK,
        source="feedback",
        value=value,
        comment=comment,
    )
