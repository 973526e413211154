"""Any sentence encoder that was exported to ONNX, run on the CPU by ONNX Runtime."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnxruntime import InferenceSession, SessionOptions
from tokenizers import Tokenizer

from litellm_messplus.encoders.bounds import (
    MAX_TOKENS,
    OF_256_TOKENS,
    cores_for_encoding,
    fingerprint,
)
from litellm_messplus.prediction.encoder import FeatureRows, Features
from litellm_messplus.runtime.errors import ConfigurationError

_PLACES = ("model.onnx", "onnx/model.onnx")
"""Paths of the model by exporters, and by sentence-transformers on Hugging Face."""
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_POOLED = "sentence_embedding"


class OnnxEncoder:
    """An encoder in a folder with `model.onnx` (also in `onnx/`) and `tokenizer.json`.

    The features are the output `sentence_embedding` if the model has one, else its first output: in
    shape (texts, dimension) as it is, in shape (texts, tokens, dimension) the mean over the tokens.
    Raises ConfigurationError when the folder does not hold such a model.
    """

    is_fast = False
    read = staticmethod(OF_256_TOKENS.read)

    def __init__(self, folder: Path) -> None:
        self._tokenizer, self._session = _load_onnx(folder)
        self._inputs = [wanted.name for wanted in self._session.get_inputs()]
        names = [given.name for given in self._session.get_outputs()]
        self._output = _POOLED if _POOLED in names else names[0]
        self.dimension = len(self._features("a"))
        files = ("tokenizer.json", "model.onnx*", "onnx/model.onnx*")
        self.name = f"onnx:{folder.resolve().name}@{fingerprint(folder, files)}"

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        """Encode to shape (texts, dimension), text by text: on a CPU a batch saves next to nothing,
        and a quantised model scales its numbers by the other texts in it."""
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            rows[row] = self._features(text)
        return rows

    def _features(self, text: str) -> Features:
        """Encode one text; a text without tokens is encoded as one padding token."""
        ids = np.array([self._tokenizer.encode(OF_256_TOKENS.of(text)).ids or [0]], dtype=np.int64)
        given = dict(zip(_INPUTS, (ids, np.ones_like(ids), np.zeros_like(ids)), strict=True))
        (output,) = self._session.run([self._output], {name: given[name] for name in self._inputs})
        states = np.asarray(output[0], dtype=np.float32)
        return states if states.ndim == 1 else states.mean(axis=0)


def _load_onnx(folder: Path) -> tuple[Tokenizer, InferenceSession]:
    model = next((folder / place for place in _PLACES if (folder / place).is_file()), None)
    if model is None or not (folder / "tokenizer.json").is_file():
        raise _onnx_refusal(folder, "")
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        session = InferenceSession(str(model), _options(), providers=["CPUExecutionProvider"])
    except Exception as error:  # both raise errors without a common type
        raise _onnx_refusal(folder, f"; this one could not be loaded: {error}") from error
    unknown = {wanted.name for wanted in session.get_inputs()}.difference(_INPUTS)
    if unknown:
        raise _onnx_refusal(folder, f"; this one wants {', '.join(sorted(unknown))} too")
    _bound(tokenizer)
    return tokenizer, session


def _options() -> SessionOptions:
    options = SessionOptions()
    options.intra_op_num_threads = cores_for_encoding()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _bound(tokenizer: Tokenizer) -> None:
    """Keep the last tokens, up to the model's own limit, without padding."""
    own = tokenizer.truncation
    tokens = MAX_TOKENS if own is None else min(MAX_TOKENS, own["max_length"])
    tokenizer.enable_truncation(tokens, direction="left")
    tokenizer.no_padding()


def _onnx_refusal(folder: Path, reason: str) -> ConfigurationError:
    return ConfigurationError(
        "messplus.encoder",
        f"onnx:{folder}",
        "onnx:FOLDER with model.onnx and tokenizer.json, downloaded before the start, for example "
        "by `hf download sentence-transformers/all-MiniLM-L6-v2 onnx/model.onnx tokenizer.json "
        f"--local-dir FOLDER`{reason}",
    )
