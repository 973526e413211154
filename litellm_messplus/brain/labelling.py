"""Adapter between requests and the label sources: calls in their form, findings as labels."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from litellm_messplus.brain.influence import KeyInfluence
from litellm_messplus.journal import Journal
from litellm_messplus.labels.checks.source import build_checks
from litellm_messplus.labels.judge.judge import Judge
from litellm_messplus.labels.key_pull import LabelContent
from litellm_messplus.labels.source import (
    Answer,
    AnsweredCall,
    Cause,
    Finding,
    JudgedRequest,
    LabelDesk,
    LabelSource,
    ReportFinding,
)
from litellm_messplus.records import CallRecord, LabelRecord, RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.runtime.vocabulary import CallRole
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings


def judged_call(
    request: JudgedRequest, record: RequestRecord, call: CallRecord, answer: Answer | None
) -> AnsweredCall:
    """Build the ended call for the label sources."""
    return AnsweredCall(
        request=request,
        call_id=call.call_id,
        candidate=call.candidate,
        is_served=call.role is CallRole.SERVED,
        calls=1 + record.exploration_calls + request.also,
        ended_at=call.ended_at,
        answer=answer,
    )


MOST_WAITING = 10_000
"""Labels that may wait for the influence of their keys to be read; more are left out and
counted."""
RETRY_SECONDS = 0.5
CLOSE_SECONDS = 5.0


class LabelWriter:
    """The writer of findings into the log. They are written with the next batch, since no request
    waits for them; if a client sets the cause of one, its influence is checked first."""

    def __init__(self, journal: Journal, influence: KeyInfluence, counters: Counters) -> None:
        self._journal = journal
        self._influence = influence
        self._counters = counters
        self._reports: list[ReportFinding] = []
        self._waiting: deque[tuple[Cause, LabelRecord]] = deque()
        self._weighing = Tasks(most=1)

    def also(self, report: ReportFinding) -> None:
        """Add a receiver of every finding."""
        self._reports.append(report)

    def report(self, finding: Finding) -> None:
        for report in self._reports:
            report(finding)
        if finding.cause is None:
            self._journal.write(finding.label())
        elif len(self._waiting) >= MOST_WAITING:
            self._counters.failure("labels_left_out", "too many labels wait to be weighed")
        else:
            self._waiting.append((finding.cause, finding.label()))
            self._weighing.start(self._weigh(), "weighing")

    async def close(self) -> None:
        """Write the waiting labels, and leave out those that cannot be weighed in time."""
        await self._weighing.close(CLOSE_SECONDS)
        for _ in self._waiting:
            self._counters.failure("labels_left_out", "a label was not weighed before the stop")

    async def _weigh(self) -> None:
        """Write the labels in order. While the database is unreachable they wait for it, as the
        journal does."""
        while self._waiting:
            cause, label = self._waiting[0]
            content = LabelContent.of(label.source, label.value, label.weight)
            try:
                counts = await self._influence.may_count(cause, content)
            except Exception:
                self._counters.failure("database_failures", "a label's key could not be looked up")
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._waiting.popleft()
            self._journal.write(label if counts else replace(label, weight=0.0))


# The configured label sources of every zoo.


def build_label_desk(
    settings: MessplusSettings,
    report: ReportFinding,
    counters: Counters,
    judges: Mapping[str, Judge],
) -> LabelDesk:
    """Build the label desk of the process; every zoo has its own sources.

    Raises ConfigurationError for a source that cannot be built.
    """
    sources = {
        name: _sources(name, zoo, report, counters, judges.get(name))
        for name, zoo in settings.zoos.items()
    }
    return LabelDesk(sources, counters)


def _sources(
    name: str, zoo: ZooSettings, report: ReportFinding, counters: Counters, judge: Judge | None
) -> list[LabelSource]:
    checks = build_checks(zoo.labels.checks, name, report, counters)
    sources: list[LabelSource | None] = [checks, judge]
    return [source for source in sources if source is not None]
