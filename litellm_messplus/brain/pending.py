"""Requests that were ordered: what the brain remembers of each until its calls have ended."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from litellm_messplus.brain.decided import Intake
from litellm_messplus.brain.messages import Caller
from litellm_messplus.core.engine import Choice, Engine, Question
from litellm_messplus.core.line import Place
from litellm_messplus.core.second_answer import CHECKED_SHARE
from litellm_messplus.labels.source import JudgedRequest
from litellm_messplus.records import CallRecord, RequestRecord
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.runtime.vocabulary import CallRole

REMEMBERED = 4096
"""Newest requests kept in memory; older ones are looked up in the log."""
OPEN = 16
"""Times as many are kept that have not ended: those of a worker that was killed never do."""


@dataclass(eq=False, slots=True)
class Pending:
    """A request that was ordered."""

    record: RequestRecord
    """As it is logged, without words of a user."""
    engine: Engine
    undecided: Intake | None = None
    """Set while its decision in shadow is awaited; it is not logged yet."""
    decided: tuple[Question, Choice] | None = None
    """Set until its answer is read, if that may be replaced."""
    place: Place | None = None
    """Its place in a conversation; None if those are not held."""
    judged: JudgedRequest | None = None
    """The request as sources of labels see it, if one judges its answers."""
    response_id: str | None = None
    calls: int = 1
    """The calls that have not ended."""

    def judged_as(self, call: CallRecord) -> JudgedRequest | None:
        """Return the request as the sources see it with this call; None if none is to judge it: an
        answer that was replaced is checked for a share of the requests, since its user's verdict is
        on the other one."""
        if self.judged is None or call.role is not CallRole.REPLACED:
            return self.judged
        is_checked = self.engine.checks_replaced(call.request_id)
        self.judged = replace(self.judged, also=int(is_checked))
        return replace(self.judged, label_probability=CHECKED_SHARE) if is_checked else None

    def ended(self, call: CallRecord) -> None:
        """Note that a call has ended; after the last, nothing is kept but the record."""
        self.calls -= call.role is not CallRole.REPLACED  # another one follows
        if call.role is CallRole.SERVED:
            self.response_id = call.response_id or self.response_id
            self.place = self.decided = None
        if self.calls <= 0:
            self.judged = None


class PendingRequests:
    """The requests that were ordered, a bounded number: more of those whose user's call has not
    ended. ``write`` logs one."""

    def __init__(
        self, write: Callable[[RequestRecord], None], remembered: int = REMEMBERED
    ) -> None:
        self._write = write
        self._newest: Bounded[str, Pending] = Bounded(remembered)
        self._unended: dict[str, Pending] = {}
        self._most = OPEN * remembered

    def add(self, pending: Pending) -> None:
        """Remember a request until it has ended, and for some time after."""
        self._newest[pending.record.request_id] = pending
        self._unended[pending.record.request_id] = pending
        if len(self._unended) > self._most:
            del self._unended[next(iter(self._unended))]

    def get(self, request_id: str) -> Pending | None:
        """Return a request; None if it was forgotten."""
        return self._unended.get(request_id) or self._newest.get(request_id)

    def ended(self, call: CallRecord) -> None:
        """Note that a call has ended."""
        pending = self.get(call.request_id)
        if call.role is CallRole.SERVED:
            self._unended.pop(call.request_id, None)
        if pending is not None:
            pending.ended(call)

    def find(self, given: str) -> Iterator[Pending]:
        """Yield those whose own id, LiteLLM call id or response id is ``given``, newest first."""
        direct = self._newest.get(given)
        if direct is not None:
            yield direct
        for pending in reversed(self._newest.values()):
            if given in (pending.record.asker.litellm_call_id, pending.response_id):
                yield pending

    def ensure_logged(self, pending: Pending) -> None:
        """Log a request that is served as before, if its decision in shadow is still awaited."""
        if pending.undecided is not None:
            pending.undecided = None
            self._write(pending.record)

    def opened(self, given: str, caller: Caller) -> RequestRecord | None:
        """Find the record of the caller's newest request that has the id ``given``, and see to it
        that it is logged; None if there is none."""
        for pending in self.find(given):
            if caller.owns(pending.record.asker.key_hash):
                self.ensure_logged(pending)
                return pending.record
        return None
