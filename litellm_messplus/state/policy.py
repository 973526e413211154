"""What a policy is: how it decides, and how it folds what the log says."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from litellm_messplus.prediction.head import Arrays, Label
from litellm_messplus.prediction.predictor import RecentPrompts
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.routing.decision import Decision, Situation
from litellm_messplus.settings.schema import ServiceLevel
from litellm_messplus.state.entries import Decided, Example, FailedCall, Given, Labelled


class Policy(Protocol):
    """A policy of one zoo, shared by its service levels. It changes by folding entries, never by
    deciding."""

    def predict(self, prompt: Prompt, candidates: Sequence[str]) -> list[float]:
        """Predict the probability of satisfaction of each named candidate, in the order given; a
        running mean of its labels where the prompt could not be read."""
        ...

    @property
    def recent(self) -> RecentPrompts | None:
        """The prompts judged lately; None for a policy that does not plan."""
        ...

    def queue(self, level: str) -> float:
        """Return the virtual queue of a service level: what is owed, in requests."""
        ...

    def answered_requests(self, level: str) -> int:
        """Count how many requests of a service level were judged."""
        ...

    def decide(self, level: ServiceLevel, situation: Situation) -> Decision:
        """Decide what to do with a request."""
        ...

    def decided(self, entry: Decided) -> None:
        """Note that a request was decided; its label may come, late or never."""
        ...

    def answered(self, entry: Labelled, verdict: Given, previous: Given | None) -> None:
        """Count a verdict on the served call of a request; ``previous`` is the verdict that is
        replaced."""
        ...

    def failed(self, call: FailedCall, verdict: Given | None) -> None:
        """Take back what was expected of a call that ended without an answer, and the ``verdict``
        that came before its end, where one did."""
        ...

    def unseen_answered(self, previous: Label | None) -> None:
        """Count a verdict on a call beside the served one; ``previous`` is the verdict that is
        replaced."""
        ...

    def learn(self, example: Example, call_id: str, verdict: Label, previous: Label | None) -> None:
        """Learn from a verdict on a call, served or not; ``previous`` is the verdict that is
        replaced."""
        ...

    def add(self, candidate: str) -> None:
        """Add a candidate of which nothing is known, behind the others."""
        ...

    def remove(self, candidate: str) -> None:
        """Forget a candidate; those behind it move up."""
        ...

    def bring_in(self, candidate: str) -> None:
        """Try an added candidate with care: the zoo serves already."""
        ...

    def newcomers(self, alpha: float, candidates: Sequence[str]) -> tuple[str, ...]:
        """Return those of the candidates that are tried with care still, at a level that aims at
        ``alpha``."""
        ...

    def plain(self) -> dict[str, Any]:
        """Return all of the state that is not arrays, as JSON."""
        ...

    def arrays(self) -> Arrays:
        """Return the rest of the state."""
        ...

    def load(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over the state that another policy of the same settings gave."""
        ...
