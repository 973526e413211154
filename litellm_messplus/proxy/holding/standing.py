"""Where a request stands in its conversation, and who holds it: what the router does with both."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from litellm_messplus.conversations.line import Place
from litellm_messplus.conversations.rule import CountedAs, Hold, LinePlace
from litellm_messplus.deciding.decider import Choice, Engine, Question
from litellm_messplus.proxy.deployments.deployment import Deployment, led_by, only, pinned
from litellm_messplus.routing.decision import Reason


@dataclass(frozen=True, slots=True)
class Pin:
    """The deployment that goes first, where it is known, and the candidate that it is of. It
    ``is_bound`` where no other candidate could read the prompt, ``is_alone`` where no other
    deployment has the state that the request continues."""

    candidate: str
    deployment: str | None
    is_bound: bool = False
    is_alone: bool = False

    def among(self, deployments: Sequence[Deployment]) -> Sequence[Deployment]:
        """Leave out those that cannot serve the request at all; all stay where none could."""
        if self.is_alone:
            left = pinned(deployments, self.deployment)
            if len(left) == 1:
                return left
        return (self.is_bound and only(deployments, self.candidate)) or deployments

    def first(self, ranked: Sequence[Deployment], tried: Collection[str]) -> Sequence[Deployment]:
        """Put the deployment before all others, unless it has failed this request."""
        if self.deployment is None or self.deployment in tried:
            return ranked
        return led_by(ranked, self.deployment)


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing of a request: its place, the question with what it finds in the caches, and why
    it is held, or held no longer. ``pin`` says by whom; None where nobody holds it. ``apart`` is
    the question of a switch, where trouble may break the hold. ``session`` is the digest of the
    session that the client named, where verdicts may be on it."""

    place: Place
    question: Question
    hold: Hold | None = None
    pin: Pin | None = None
    apart: Question | None = None
    session: str | None = None

    def choose(self, engine: Engine) -> Choice | None:
        """Choose who holds it, or a better one where trouble shows; None where it is to be
        decided."""
        if self.pin is None:
            return None
        if self.apart is not None:
            better = engine.go_up(self.apart, self.pin.candidate)
            if better is not None:
                return better
        return engine.hold(self.question, self.pin.candidate)

    def logged(self, reason: Reason) -> LinePlace:
        """Return what the log keeps of the place of a request, which was decided for that
        reason."""
        line = self.place.line
        hold = Hold.TROUBLE if reason is Reason.TROUBLE else self.hold
        prefix = self.place.prompt.hex()
        return LinePlace(line.conversation, line.name, prefix, self.place.turn, hold)

    @property
    def counted(self) -> CountedAs | None:
        """The count of a request; None where it stands for itself and named no session."""
        if self.question.counted_with is None and self.session is None:
            return None
        return CountedAs(self.question.counted_with, self.session)

    def followed(self, choice: Choice) -> Pin | None:
        """Note that the choice is followed; returns the pin, where the choice follows that."""
        if choice.decision.reason is Reason.TROUBLE:
            self.place.line.went_up = True
        follows = self.pin is not None and choice.decision.chosen == self.pin.candidate
        return self.pin if follows else None
