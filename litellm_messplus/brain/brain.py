"""The brain: a request in, an order out, each of them logged. It knows no LiteLLM."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from litellm_messplus.brain.arms import Arms, shadow_level
from litellm_messplus.brain.asked import OPEN, Admission, Asked
from litellm_messplus.brain.decided import (
    DecidedRequest,
    Intake,
    Recorder,
    RequestDecider,
    in_shadow,
)
from litellm_messplus.brain.holds import Continued, Holds, Pin
from litellm_messplus.brain.labelling import judged_call, judged_request
from litellm_messplus.brain.levels import granted_level, service_level
from litellm_messplus.conversations.line import Place
from litellm_messplus.core.answer import AnswerSurface
from litellm_messplus.core.decision import Reason
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.question import Choice, Question, Reading
from litellm_messplus.journal import Journal
from litellm_messplus.labels.source import Answer, JudgedRequest, LabelDesk
from litellm_messplus.records import CallRecord, RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.switching.modes import Arm


class Awaited(NamedTuple):
    """A decided request whose answer is read to keep or replace it."""

    engine: Engine
    question: Question
    choice: Choice

    def read(self, looks: AnswerSurface) -> Reading:
        """Read the answer of the chosen candidate, and decide whether another one is called."""
        return self.engine.reads(self.question, self.choice, looks)


@dataclass(frozen=True, slots=True)
class Order:
    """What the hands do with a request, and remember until it ends."""

    record: RequestRecord
    ranking: tuple[str, ...] = ()
    """The candidates in the order in which to try them."""
    explored: tuple[str, ...] = ()
    """The candidates that are called in addition, unseen."""
    admission: Admission = OPEN
    place: Place | None = None
    """Its place in a conversation; None if those are not held."""
    pin: Pin | None = None
    """What holds it."""
    judged: JudgedRequest | None = None
    """The request as the label sources see it, if one judges its answers."""
    awaited: Awaited | None = None
    """Set if its answer may be replaced."""


class Brain:
    """The decisions of one process, and what follows from each."""

    def __init__(
        self,
        settings: MessplusSettings,
        engines: Mapping[str, Engine],
        arms: Arms,
        decider: RequestDecider,
        holds: Holds,
        journal: Journal,
        desk: LabelDesk,
        counters: Counters,
    ) -> None:
        self.engines = engines
        self.holds = holds
        self.journal = journal
        self.desk = desk
        self._arms = arms
        self._decider = decider
        self._recorder = Recorder(settings)
        self._counters = counters

    def begin(self, asked: Asked) -> Intake:
        """Draw the arm of a request, and find the promise that it counts towards.

        Raises RefusedError for a level that the zoo does not have."""
        engine = self.engines[asked.zoo]
        own = service_level(engine.zoo, asked.level, self._counters)
        trial, before = self._arms.arm(engine.zoo, asked)
        if before is None:
            level = granted_level(engine.zoo, own, asked.level, self._counters)
        else:
            level = shadow_level(own)
        return Intake(engine, asked, level, trial, before)

    async def decide(self, intake: Intake, admission: Admission, began: float) -> Order:
        """Decide and log a request that waits for it, of which the hands ``began`` to read at that
        time of the performance counter."""
        decided = await self._decider.decide(intake, admission, began)
        if decided.features is None:
            self._counters.add("features_late")
        record = self._recorder.decided(decided)
        self.journal.write(record)
        awaited = Awaited(intake.engine, decided.question, decided.choice)
        return Order(
            record,
            decided.ranking,
            decided.explored,
            admission,
            place=None if decided.standing is None else decided.standing.place,
            pin=decided.pin,
            judged=self._judged(record, intake),
            awaited=awaited if decided.reads else None,
        )

    def pass_by(self, intake: Intake, serves: str) -> tuple[Order, Intake | None]:
        """Record a request that is served as before, without a decision; it is not logged yet.
        Return it as it is to be decided in shadow too, None if it is not."""
        is_off = intake.trial.arm is Arm.OFF
        is_due = not is_off and self._arms.is_due(intake.zoo, intake.request_id)
        if is_due:
            trial = self._arms.drawn(intake.zoo, intake.asked, intake.trial)
            intake = replace(intake, trial=trial)
        reason = Reason.OFF if is_off else Reason.UNDECIDED
        order = Order(self._recorder.undecided(intake, serves, reason))
        return order, intake if is_due else None

    async def shadow(
        self,
        intake: Intake,
        serves: str,
        admission: Admission,
        began: float,
        is_open: Callable[[], bool],
    ) -> Order | None:
        """Decide and log a request that is served as before; None, without a record, if it is not
        ``is_open`` any more when it is decided, since it is logged as undecided then."""
        try:
            decided = await self._decider.decide(intake, admission, began)
            if is_open():
                return self._in_shadow(decided, serves)
            intake.engine.forget(intake.request_id)
            return None
        except Exception:
            intake.engine.forget(intake.request_id)
            raise

    def _in_shadow(self, decided: DecidedRequest, serves: str) -> Order:
        record, intake = self._recorder.decided(decided), decided.intake
        called = self._arms.sampled(decided, record, serves)
        record = in_shadow(record, decided, serves, called)
        self.journal.write(record)
        judged = self._judged(record, intake)
        return Order(record, (), called, decided.admission, judged=judged)

    def called(self, place: Place, zoo: str, deployment: str) -> None:
        """Note which deployment answers, before it is logged: the next request may come first."""
        self.holds.called(place, zoo, deployment)

    def ended(
        self,
        record: RequestRecord,
        call: CallRecord,
        judged: JudgedRequest | None,
        answer: Answer | None,
    ) -> None:
        """Log an ended call of a request, and show it to the sources of labels if they judge it;
        ``answer`` is None if it failed."""
        self.journal.write(call)
        if judged is not None:
            self.desk.ended(judged_call(judged, record, call, answer))

    def continued(self, place: Place, zoo: str, call: CallRecord, answer: Continued) -> None:
        """Note what a conversation goes on from."""
        self.holds.ended(place, zoo, call, answer)

    def _judged(self, record: RequestRecord, intake: Intake) -> JudgedRequest | None:
        is_watched = self.desk.is_watched(record.zoo)
        return judged_request(record, intake.asked) if is_watched else None
