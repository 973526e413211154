"""What a policy is: how it decides, how it folds what the log says, and the policies by name."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from litellm_messplus.prediction.head import Arrays, Label, LinearHeads
from litellm_messplus.prediction.predictor import Predictor, RecentPrompts
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.routing.decision import Decision, Situation
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.state.adaptive_policy import AdaptivePolicy
from litellm_messplus.state.entries import Decided, Example, FailedCall, Labelled
from litellm_messplus.state.paper_policy import PaperPolicy
from litellm_messplus.state.verdict import Given

if TYPE_CHECKING:
    from litellm_messplus.prediction.neural_heads import NeuralHeads


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


# The policies by name, and the heads that policy `paper` learns with.


def build_policy(
    settings: ZooSettings, candidates: Sequence[str], dimension: int, *, is_fast: bool
) -> Policy:
    """Build a policy that has learned nothing yet, for features of that dimension, from an encoder
    that is fast or not.

    Raises ConfigurationError where policy `paper` needs torch, which is not installed.
    """
    match settings.policy:
        case "adaptive":
            return AdaptivePolicy(Predictor(candidates, dimension))
        case "paper":
            heads = _paper_heads(is_fast=is_fast)(
                candidates,
                dimension,
                learning_rate=settings.learning_rate,
                momentum=settings.momentum,
                weight_decay=settings.weight_decay,
            )
            return PaperPolicy(heads)


def _paper_heads(*, is_fast: bool) -> "type[LinearHeads | NeuralHeads]":
    """Choose the paper's own heads behind an encoder as slow as the paper's; linear ones, which
    take microseconds and no torch, behind a fast one."""
    if is_fast:
        return LinearHeads
    try:  # torch takes seconds to import: only where it is needed
        from litellm_messplus.prediction.neural_heads import NeuralHeads
    except ImportError as error:
        raise ConfigurationError(
            "messplus.zoos.*.policy",
            "paper",
            "`adaptive`, unless torch is there for the paper's predictor: "
            "pip install 'litellm-messplus[transformers]'",
        ) from error
    return NeuralHeads
