"""Loading the encoder of the setting `encoder`, with a test run before anything is served."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import numpy as np

from litellm_messplus.prediction.encoder import Conversation, Encoder, FeatureRows
from litellm_messplus.prediction.hashed_ngrams import HashedNgrams
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


class Kind(StrEnum):
    """The kinds of encoder that a setting may name."""

    EMBEDDED = "hashed-ngrams"
    NONE = NoEncoder.name
    STATIC = "static"
    ONNX = "onnx"
    THIRD_PARTY = "package.module:attribute"
    TRANSFORMER = "a name on Hugging Face, or a folder"


def load_encoder(setting: str) -> Encoder:
    """Load the encoder that a setting names: `hashed-ngrams`, `none`, `static:FOLDER`,
    `onnx:FOLDER`, `package.module:attribute`, else a name on Hugging Face or a local folder.

    Raises ConfigurationError when packages or weights are missing, or when the encoder does not
    keep to the protocol.
    """
    return tried(setting, build_encoder(setting))


def kind_of(setting: str) -> Kind:
    """Return the kind that a setting names, without imports."""
    kind, _, rest = setting.partition(":")
    if setting in (Kind.EMBEDDED, Kind.NONE):
        return Kind(setting)
    if kind in (Kind.STATIC, Kind.ONNX) and rest:
        return Kind(kind)
    return Kind.THIRD_PARTY if DOTTED_PATH.fullmatch(setting) else Kind.TRANSFORMER


def build_encoder(setting: str) -> Encoder:
    """Build an encoder as `load_encoder` does, without the test run."""
    kind = kind_of(setting)
    if kind is Kind.EMBEDDED:
        return HashedNgrams()
    if kind is Kind.NONE:
        return NoEncoder()
    if kind is Kind.THIRD_PARTY:
        encoder: Encoder = load_part(KEY, setting, "an encoder", _MEMBERS)
        return encoder
    return _from_files(kind, setting)


def tried(setting: str, encoder: Encoder) -> Encoder:
    """Return the encoder after a test run with a short text, which also warms it up for the first
    request. Raises ConfigurationError."""
    try:
        rows = encoder.encode(["Does this encoder work?"])
    except Exception as error:  # of any library, or of third-party code
        raise ConfigurationError(KEY, setting, f"an encoder that encodes ({error!r})") from error
    if rows.shape != (1, encoder.dimension) or not np.isfinite(rows).all():
        allowed = f"an encoder that gives finite features of shape (1, {encoder.dimension})"
        raise ConfigurationError(KEY, setting, f"{allowed}; this one gave shape {rows.shape}")
    return encoder


def _from_files(kind: Kind, setting: str) -> Encoder:
    """Build an encoder from files, with packages of an extra. Raises ConfigurationError."""
    folder = Path(setting.partition(":")[2])
    try:
        if kind is Kind.STATIC:
            from litellm_messplus.encoders.static import StaticEncoder

            return StaticEncoder(folder)
        if kind is Kind.ONNX:
            from litellm_messplus.encoders.onnx import OnnxEncoder

            return OnnxEncoder(folder)
        from litellm_messplus.encoders.transformer import TransformerEncoder

        return TransformerEncoder(setting)
    except ImportError as missing:
        extra = "transformers" if kind is Kind.TRANSFORMER else kind.value
        install = f"pip install 'litellm-messplus[{extra}]'"
        raise ConfigurationError(
            KEY, setting, f"this once its packages are installed: {install} ({missing})"
        ) from missing
    except ConfigurationError:
        raise
    except Exception as error:  # of any library, for a model that loads and does not run
        raise ConfigurationError(KEY, setting, f"an encoder that runs ({error!r})") from error
