"""A LiteLLM proxy plugin that holds a promised share of satisfied requests at the lowest cost.

What others build on is imported from here, and stays: protocols of encoders, heads, checks and
meters, the fakes and conformance checks for their tests, and the replay. Each name is loaded when
it is first asked for, so that a command does not wait for what it does not use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from litellm_messplus.conformance.encoders import check_encoder
    from litellm_messplus.conformance.heads import check_head
    from litellm_messplus.encoders.fake import FakeEncoder
    from litellm_messplus.energy.meter import Meter, Reading, Window, reading
    from litellm_messplus.errors import ConfigurationError, MessplusError
    from litellm_messplus.labels.answered_call import Answer, AnsweredCall
    from litellm_messplus.labels.checks.check import Check, Score
    from litellm_messplus.prediction.conversation import Conversation, Turn, shortened
    from litellm_messplus.prediction.encoder import Encoder, FeatureRows, Features
    from litellm_messplus.prediction.hashed_ngrams import HashedNgrams
    from litellm_messplus.prediction.head import Head
    from litellm_messplus.prediction.label import Label
    from litellm_messplus.replay.experiment import Experiment, Plan
    from litellm_messplus.replay.files import read_file

__all__ = [
    "Answer",
    "AnsweredCall",
    "Check",
    "ConfigurationError",
    "Conversation",
    "Encoder",
    "Experiment",
    "FakeEncoder",
    "FeatureRows",
    "Features",
    "HashedNgrams",
    "Head",
    "Label",
    "MessplusError",
    "Meter",
    "Plan",
    "Reading",
    "Score",
    "Turn",
    "Window",
    "check_encoder",
    "check_head",
    "read_file",
    "reading",
    "shortened",
]

_HOMES = {
    "litellm_messplus.conformance.encoders": ("check_encoder",),
    "litellm_messplus.conformance.heads": ("check_head",),
    "litellm_messplus.encoders.fake": ("FakeEncoder",),
    "litellm_messplus.energy.meter": ("Meter", "Reading", "Window", "reading"),
    "litellm_messplus.errors": ("ConfigurationError", "MessplusError"),
    "litellm_messplus.labels.answered_call": ("Answer", "AnsweredCall"),
    "litellm_messplus.labels.checks.check": ("Check", "Score"),
    "litellm_messplus.prediction.conversation": ("Conversation", "Turn", "shortened"),
    "litellm_messplus.prediction.encoder": ("Encoder", "FeatureRows", "Features"),
    "litellm_messplus.prediction.hashed_ngrams": ("HashedNgrams",),
    "litellm_messplus.prediction.head": ("Head",),
    "litellm_messplus.prediction.label": ("Label",),
    "litellm_messplus.replay.experiment": ("Experiment", "Plan"),
    "litellm_messplus.replay.files": ("read_file",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name from its module, once."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
