"""A LiteLLM proxy plugin that holds a promised share of satisfied requests at the lowest cost.

What others build on is imported from here, and stays: protocols of encoders, checks and meters, the
conformance checks for their tests, and the replay. Each name is loaded when
it is first asked for, so that a command does not wait for what it does not use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from litellm_messplus.conformance import check_encoder
    from litellm_messplus.core.encoder import (
        Conversation,
        Encoder,
        FeatureRows,
        Features,
        Turn,
        shortened,
    )
    from litellm_messplus.core.hashed_ngrams import HashedNgrams
    from litellm_messplus.energy.meter import Meter, Reading, Window, reading
    from litellm_messplus.labels.checks.check import Check, Score
    from litellm_messplus.labels.source import Answer, AnsweredCall
    from litellm_messplus.replay.experiment import Experiment
    from litellm_messplus.replay.files import read_file
    from litellm_messplus.replay.plan import Plan
    from litellm_messplus.runtime.errors import ConfigurationError, MessplusError

__all__ = [
    "Answer",
    "AnsweredCall",
    "Check",
    "ConfigurationError",
    "Conversation",
    "Encoder",
    "Experiment",
    "FeatureRows",
    "Features",
    "HashedNgrams",
    "MessplusError",
    "Meter",
    "Plan",
    "Reading",
    "Score",
    "Turn",
    "Window",
    "check_encoder",
    "read_file",
    "reading",
    "shortened",
]

_HOME_OF = {
    "Answer": "litellm_messplus.labels.source",
    "AnsweredCall": "litellm_messplus.labels.source",
    "Check": "litellm_messplus.labels.checks.check",
    "ConfigurationError": "litellm_messplus.runtime.errors",
    "Conversation": "litellm_messplus.core.encoder",
    "Encoder": "litellm_messplus.core.encoder",
    "Experiment": "litellm_messplus.replay.experiment",
    "FeatureRows": "litellm_messplus.core.encoder",
    "Features": "litellm_messplus.core.encoder",
    "HashedNgrams": "litellm_messplus.core.hashed_ngrams",
    "MessplusError": "litellm_messplus.runtime.errors",
    "Meter": "litellm_messplus.energy.meter",
    "Plan": "litellm_messplus.replay.plan",
    "Reading": "litellm_messplus.energy.meter",
    "Score": "litellm_messplus.labels.checks.check",
    "Turn": "litellm_messplus.core.encoder",
    "Window": "litellm_messplus.energy.meter",
    "check_encoder": "litellm_messplus.conformance",
    "read_file": "litellm_messplus.replay.files",
    "reading": "litellm_messplus.energy.meter",
    "shortened": "litellm_messplus.core.encoder",
}
"""Where each public name is loaded from."""


def __getattr__(name: str) -> Any:
    """Load a public name from its module, once."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
