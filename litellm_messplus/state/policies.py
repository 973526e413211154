"""The policies by name, and the heads that policy `paper` learns with."""

from collections.abc import Callable, Sequence
from typing import TypedDict

from litellm_messplus.errors import ConfigurationError
from litellm_messplus.prediction.head import Head, LinearHeads
from litellm_messplus.prediction.predictor import Predictor
from litellm_messplus.settings.policies import PolicyName
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.state.adaptive_policy import AdaptivePolicy
from litellm_messplus.state.paper_policy import PaperPolicy
from litellm_messplus.state.policy import Policy


def build_policy(
    settings: ZooSettings, candidates: Sequence[str], dimension: int, *, is_fast: bool
) -> Policy:
    """Build a policy that has learned nothing yet, for features of that dimension, from an encoder
    that is fast or not.

    Raises ConfigurationError where policy `paper` needs torch, which is not installed.
    """
    return BUILDERS[settings.policy](settings, candidates, dimension, is_fast)


def _adaptive(
    settings: ZooSettings, candidates: Sequence[str], dimension: int, is_fast: bool
) -> Policy:
    return AdaptivePolicy(Predictor(candidates, dimension))


def _paper(
    settings: ZooSettings, candidates: Sequence[str], dimension: int, is_fast: bool
) -> Policy:
    heads = _paper_heads(settings, candidates, dimension, is_fast)
    return PaperPolicy(heads, settings.exploration_wait_seconds)


Builder = Callable[[ZooSettings, Sequence[str], int, bool], Policy]

BUILDERS: dict[PolicyName, Builder] = {"adaptive": _adaptive, "paper": _paper}


class _Descent(TypedDict):
    """The settings that the paper's predictor descends by."""

    learning_rate: float
    momentum: float
    weight_decay: float


def _paper_heads(
    settings: ZooSettings, candidates: Sequence[str], dimension: int, is_fast: bool
) -> Head:
    """Build the paper's own heads behind an encoder as slow as the paper's; linear ones, which take
    microseconds and no torch, behind a fast one."""
    descent = _Descent(
        learning_rate=settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
    )
    if is_fast:
        return LinearHeads(candidates, dimension, **descent)
    try:  # torch takes seconds to import: only where it is needed
        from litellm_messplus.prediction.neural_heads import NeuralHeads
    except ImportError as error:
        raise ConfigurationError(
            "messplus.zoos.*.policy",
            settings.policy,
            "`adaptive`, unless torch is there for the paper's predictor: "
            "pip install 'litellm-messplus[transformers]'",
        ) from error
    return NeuralHeads(candidates, dimension, **descent)
