"""Failed requests as unsatisfied ones, where a promise has `failures: count`.

A failure is no verdict on a model, so no other source labels a request without an answer, and the
learner never sees this label. It is in the log like any other: the promise, the certificate and
SQL count it without a rule of their own.
"""

from collections.abc import Collection

from litellm_messplus.labels.source import AnsweredCall, Finding, ReportFinding
from litellm_messplus.vocabulary import FAILED, SERVING, LabelKind


class Failures:
    """The label source that calls a request unsatisfied where those who serve failed it, at the
    ``levels`` that count that."""

    name = FAILED

    def __init__(self, levels: Collection[str], report: ReportFinding) -> None:
        self._levels = frozenset(levels)
        self._report = report

    def ended(self, call: AnsweredCall) -> None:
        """Label a failed request. Its client may be the cause, by a timeout that no model keeps."""
        counts = call.asked.service_level in self._levels
        if counts and call.is_served and call.failure in SERVING:
            self._report(
                Finding(
                    call_id=call.call_id,
                    request_id=call.asked.request_id,
                    kind=LabelKind.CHECK,
                    source=self.name,
                    value=0.0,
                    weight=1.0,
                    comment=f"no answer: {call.failure}",
                    cause=call.asked.cause,
                )
            )

    async def close(self) -> None:
        """Do nothing: no work is under way."""
