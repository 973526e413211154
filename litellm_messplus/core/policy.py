"""The interface of a policy: how it decides, how it folds the log; and the policies by name."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from litellm_messplus.core.adaptive_policy import AdaptivePolicy
from litellm_messplus.core.answer_heads import Spread
from litellm_messplus.core.decision import Decision, Situation
from litellm_messplus.core.entries import Decided, Example, FailedCall, Labelled
from litellm_messplus.core.head import Arrays, Label, LinearHeads
from litellm_messplus.core.paper_policy import PaperPolicy
from litellm_messplus.core.predictor import Predictor, Seen
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.recent import RecentPrompts
from litellm_messplus.core.verdict import Given
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.settings.promise import ServiceLevel
from litellm_messplus.settings.schema import ZooSettings

if TYPE_CHECKING:
    from litellm_messplus.core.neural_heads import NeuralHeads


class Policy(Protocol):
    """A policy of one zoo, shared by its service levels. It changes by folding entries, never by
    deciding."""

    def predict(self, prompt: Prompt, candidates: Sequence[str]) -> list[float]:
        """Predict the probability of satisfaction of each named candidate, in the order given; the
        running mean of its labels if the prompt could not be read."""

    @property
    def recent(self) -> RecentPrompts | None:
        """The recently judged prompts; None for a policy that does not plan."""

    def queue(self, level: str) -> float:
        """Return the virtual queue of a service level: the shortfall owed, in requests."""

    def answered_requests(self, level: str) -> int:
        """Return the number of judged requests of a service level."""

    def decide(self, level: ServiceLevel, situation: Situation) -> Decision:
        """Decide which candidates to call for a request."""

    def decided(self, entry: Decided) -> None:
        """Note that a request was decided; its label may come late or never."""

    def answered(self, entry: Labelled, verdict: Given, previous: Given | None) -> None:
        """Count a verdict on the served call of a request; ``previous`` is the verdict that it
        replaces."""

    def failed(self, call: FailedCall, verdict: Given | None) -> None:
        """Take back what was expected of a call that ended without an answer, and its earlier
        ``verdict``, if any."""

    def unseen_answered(self, previous: Label | None) -> None:
        """Count a verdict on another call than the served one; ``previous`` is the verdict that it
        replaces."""

    def learn(self, example: Example, call_id: str, verdict: Label, previous: Label | None) -> None:
        """Learn from a verdict on a call, served or not; ``previous`` is the verdict that it
        replaces."""

    def read(self, example: Example) -> None:
        """Learn what a candidate's answers look like from one that ended."""

    def shown(self, candidate: str, prompt: Prompt, seen: Seen) -> tuple[float, float]:
        """Predict the probability of satisfaction of one candidate before and after its answer is
        read."""

    def spread(self, candidates: Sequence[str]) -> Spread | None:
        """Return what the answers of the candidates usually show, in the order given; None for a
        policy that does not read answers."""

    def add(self, candidate: str) -> None:
        """Append a candidate without any knowledge of it."""

    def remove(self, candidate: str) -> None:
        """Forget a candidate; those after it move up."""

    def bring_in(self, candidate: str) -> None:
        """Put an added candidate on trial, because the zoo serves already."""

    def newcomers(self, alpha: float, candidates: Sequence[str]) -> tuple[str, ...]:
        """Return those of the candidates that are still on trial, at a level that aims at
        ``alpha``."""

    def plain(self) -> dict[str, Any]:
        """Return the state without arrays, as JSON."""

    def arrays(self) -> Arrays:
        """Return the arrays of the state."""

    def load(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Load the state of another policy with the same settings."""


# The policies by name, and the heads of policy `paper`.


MOMENTUM, WEIGHT_DECAY = 0.9, 0.01
"""The SGD of the paper's heads: its momentum, and mu, the strength of its regularisation (Appendix
B)."""


def build_policy(
    settings: ZooSettings, candidates: Sequence[str], dimension: int, *, is_fast: bool
) -> Policy:
    """Build a policy that has learned nothing yet, for features of that dimension, from an encoder
    that is fast or not.

    Raises ConfigurationError if policy `paper` needs torch, which is not installed.
    """
    match settings.policy:
        case "adaptive":
            return AdaptivePolicy(Predictor(candidates, dimension))
        case "paper":
            heads = _paper_heads(is_fast=is_fast)(
                candidates,
                dimension,
                learning_rate=settings.learning_rate,
                momentum=MOMENTUM,
                weight_decay=WEIGHT_DECAY,
            )
            return PaperPolicy(heads)


def _paper_heads(*, is_fast: bool) -> "type[LinearHeads | NeuralHeads]":
    """Choose the paper's own heads for an encoder as slow as the paper's; for a fast one linear
    heads, which take microseconds and no torch."""
    if is_fast:
        return LinearHeads
    try:  # torch takes seconds to import: only if it is needed
        from litellm_messplus.core.neural_heads import NeuralHeads
    except ImportError as error:
        raise ConfigurationError(
            "messplus.zoos.*.policy",
            "paper",
            "`adaptive`, unless torch is there for the paper's predictor: "
            "pip install 'litellm-messplus[transformers]'",
        ) from error
    return NeuralHeads
