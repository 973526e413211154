"""The policies by name."""

from collections.abc import Sequence

from litellm_messplus.learning.adaptive import AdaptivePolicy
from litellm_messplus.learning.paper import PaperPolicy
from litellm_messplus.learning.policy import Policy
from litellm_messplus.prediction.linear_heads import LinearHeads
from litellm_messplus.prediction.predictor import Predictor
from litellm_messplus.settings.schema import ZooSettings


def build_policy(settings: ZooSettings, candidates: Sequence[str], dimension: int) -> Policy:
    """A policy that has learned nothing yet, for features of that dimension."""
    if settings.policy == "adaptive":
        return AdaptivePolicy(Predictor(candidates, dimension), settings.response_bias)
    heads = LinearHeads(
        candidates,
        dimension,
        learning_rate=settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
    )
    return PaperPolicy(heads)
