"""Which encoder serves requests where: a fast one in the event loop, a slow one beside it."""

from litellm_messplus.encoders.lookup import Kind, build_encoder, kind_of, tried
from litellm_messplus.encoders.process import ProcessEncoder
from litellm_messplus.encoders.window import OF_256_TOKENS
from litellm_messplus.prediction.encoder import Encoder


def load_for_requests(setting: str) -> Encoder:
    """As `load_encoder`, and what is slow in a process of its own.

    Of those here, this process then loads nothing, not even their libraries. One of a third party
    is made here, too: it says whether it is fast, and reads the conversations. Raises
    ConfigurationError.
    """
    if kind_of(setting) in (Kind.ONNX, Kind.TRANSFORMER):
        return ProcessEncoder(setting, OF_256_TOKENS.read)
    encoder = build_encoder(setting)
    if encoder.is_fast:
        return tried(setting, encoder)
    return ProcessEncoder(setting, encoder.read)
