"""Static token embeddings (model2vec): a sentence encoder distilled to one vector a token.

Features are the mean of the tokens' vectors. No neural network runs, so a prompt takes a quarter of
a millisecond, nearly all of it in the tokenizer.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from model2vec import StaticModel

from litellm_messplus.encoders.bounds import Window, fingerprint
from litellm_messplus.prediction.encoder import FeatureRows
from litellm_messplus.runtime.errors import ConfigurationError

WINDOW = Window(characters=2048, head=512)
"""Window of about 500 tokens, which takes well under a millisecond."""
_FILES = ("**/config*.json", "**/tokenizer.json", "**/model.safetensors")


class StaticEncoder:
    """An encoder in a folder of model2vec: `model.safetensors`, `tokenizer.json`, `config.json`.

    Raises ConfigurationError if the folder is missing or holds something else.
    """

    is_fast = True
    read = staticmethod(WINDOW.read)

    def __init__(self, folder: Path) -> None:
        self._model = _load_static(folder)
        self.dimension = self._model.dim
        self.name = f"static:{folder.resolve().name}@{fingerprint(folder, _FILES)}"

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        """Encode to shape (texts, dimension). A text without known tokens gives the zero vector."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        rows = self._model.encode(
            [WINDOW.of(text) for text in texts],
            max_length=None,  # its truncation would keep the beginning; the window suffices
            use_multiprocessing=False,
        )
        return np.asarray(rows, dtype=np.float32)


def _load_static(folder: Path) -> StaticModel:
    # Checked here, because model2vec would look for a missing folder on the hub.
    if folder.is_dir():
        try:
            return StaticModel.from_pretrained(folder)
        except Exception as error:  # safetensors and tokenizers raise errors without a common type
            raise _static_refusal(folder, f"; this one could not be loaded: {error}") from error
    raise _static_refusal(folder, "")


def _static_refusal(folder: Path, reason: str) -> ConfigurationError:
    return ConfigurationError(
        "messplus.encoder",
        f"static:{folder}",
        "static:FOLDER of a model in model2vec's format, downloaded before the start, for example "
        f"by `hf download minishlab/potion-base-8M --local-dir FOLDER`{reason}",
    )
