"""Loading the encoder of the setting `encoder`, with a test run before anything is served."""

from collections.abc import Sequence

import numpy as np

from litellm_messplus.core.encoder import Conversation, Encoder, FeatureRows
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.loading import DOTTED_PATH, load_part

# No encoder: the prompt is not read, and predictions are the running means.
#
# The baseline that every other encoder has to beat; see `messplus replay --encoder`.


class NoEncoder:
    """The encoder that sees nothing: its ``dimension`` is 1, and its feature always zero, so that
    no head can learn from it."""

    name = "none"
    dimension = 1
    is_fast = True

    def read(self, conversation: Conversation) -> str:
        """Read nothing."""
        return ""

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        """Return zeros of shape (texts, 1)."""
        return np.zeros((len(texts), self.dimension), dtype=np.float32)


KEY = "messplus.encoder"
_MEMBERS = ("name", "dimension", "is_fast", "read", "encode")


FORMER = ("onnx", "static")
"""Kinds that there are no more, as in `onnx:FOLDER`."""


def load_encoder(setting: str) -> Encoder:
    """Load the encoder that a setting names: `hashed-ngrams`, `none`, `package.module:attribute`,
    else a name on Hugging Face or a local folder. A test run with a short text warms it up.

    Raises ConfigurationError when packages or weights are missing, or when the encoder does not
    keep to the protocol.
    """
    encoder = _built(setting)
    try:
        rows = encoder.encode(["Does this encoder work?"])
    except Exception as error:  # of any library, or of third-party code
        raise ConfigurationError(KEY, setting, f"an encoder that encodes ({error!r})") from error
    if rows.shape != (1, encoder.dimension) or not np.isfinite(rows).all():
        allowed = f"an encoder that gives finite features of shape (1, {encoder.dimension})"
        raise ConfigurationError(KEY, setting, f"{allowed}; this one gave shape {rows.shape}")
    return encoder


def _built(setting: str) -> Encoder:
    if setting == "hashed-ngrams":
        return HashedNgrams()
    if setting == NoEncoder.name:
        return NoEncoder()
    if setting.partition(":")[0] in FORMER:
        own = "`package.module:attribute`: an encoder of your own that loads it"
        raise ConfigurationError(KEY, setting, f"{own} (docs/encoders.md)")
    if DOTTED_PATH.fullmatch(setting):
        encoder: Encoder = load_part(KEY, setting, "an encoder", _MEMBERS)
        return encoder
    try:
        from litellm_messplus.encoders.transformer import TransformerEncoder

        return TransformerEncoder(setting)
    except ImportError as missing:
        install = "pip install 'litellm-messplus[transformers]'"
        raise ConfigurationError(
            KEY, setting, f"this once its packages are installed: {install} ({missing})"
        ) from missing
    except ConfigurationError:
        raise
    except Exception as error:  # of any library, for a model that loads and does not run
        raise ConfigurationError(KEY, setting, f"an encoder that runs ({error!r})") from error
