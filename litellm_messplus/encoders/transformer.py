"""A frozen transformer encoder of Hugging Face, its last layer pooled: the paper's (Section 4).

It runs on the GPU if there is one. Nothing is downloaded: the weights are in a folder or in the
local cache before the proxy starts.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_hub import snapshot_download
from transformers import AutoModel, AutoTokenizer

from litellm_messplus.core.encoder import FeatureRows
from litellm_messplus.encoders.bounds import MAX_TOKENS, OF_256_TOKENS, fingerprint
from litellm_messplus.runtime.errors import ConfigurationError

_BATCH = 32
_FILES = ("config.json", "tokenizer.json", "model*.safetensors")

Tokens = list[int]


class TransformerEncoder:
    """An encoder by its name on Hugging Face or its local folder; the features are the mean over
    the tokens.

    Its name depends on the weights, not on their location. Raises ConfigurationError if they are
    missing, or not an encoder's.
    """

    is_fast = False
    read = staticmethod(OF_256_TOKENS.read)

    def __init__(self, source: str) -> None:
        folder = _folder(source)
        torch.set_num_threads(1)  # the event loop needs a core too
        self._tokenizer, model = _load(source, folder)
        model.config.reference_compile = False  # transformers 4: no compilation during a request
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._model = model.float().eval().requires_grad_(False).to(self._device)
        self._tokens = min(MAX_TOKENS, self._tokenizer.model_max_length)
        self.dimension = int(model.config.hidden_size)
        name = folder.resolve().name if Path(source).is_dir() else source.rpartition("/")[-1]
        self.name = f"{name}-mean-{self._tokens}@{fingerprint(folder, _FILES)}"

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        """Encode to shape (texts, dimension). A text without tokens gives the zero vector."""
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        tokens = self._tokenized(texts)
        for places in _batches(tokens):
            rows[places] = self._pooled([tokens[place] for place in places])
        return rows

    def _tokenized(self, texts: Sequence[str]) -> list[Tokens]:
        if not texts:
            return []
        bounded = [OF_256_TOKENS.of(text) for text in texts]
        found = self._tokenizer(bounded, truncation=True, max_length=self._tokens)
        tokens: list[Tokens] = found["input_ids"]
        return tokens

    @torch.inference_mode()
    def _pooled(self, tokens: Sequence[Tokens]) -> FeatureRows:
        """Average the last layer over each text's own tokens, padding left out."""
        ids, mask = _padded(tokens, self._tokenizer.pad_token_id or 0)
        ids, mask = ids.to(self._device), mask.to(self._device)
        states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
        total = states.masked_fill(mask.unsqueeze(-1) == 0, 0.0).sum(dim=1)
        pooled: FeatureRows = (total / mask.sum(dim=1, keepdim=True)).cpu().numpy()
        return pooled


def _folder(source: str) -> Path:
    """Find the folder of the weights: the given one, or that in the local cache."""
    if Path(source).is_dir():
        return Path(source)
    try:
        return Path(snapshot_download(source, local_files_only=True))
    except (OSError, ValueError) as missing:  # not in the cache, or an invalid name
        raise _refusal(source, "") from missing


def _load(source: str, folder: Path) -> tuple[Any, Any]:
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, truncation_side="left"
        )
        model, found = AutoModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, output_loading_info=True
        )
    except Exception as error:  # any error of the libraries for a broken folder
        raise _refusal(source, f"; this one could not be loaded: {error}") from error
    # A pooling layer on top may be missing, as it is unused; other missing weights would be random.
    missing = [key for key in found["missing_keys"] if "pooler" not in key]
    if missing:
        raise _refusal(source, f"; this one lacks {len(missing)} weights, as {missing[0]}")
    return tokenizer, model


def _batches(tokens: Sequence[Tokens]) -> Iterator[list[int]]:
    """Yield indices of texts, grouped by similar length, to limit padding."""
    places = [place for place, found in enumerate(tokens) if found]
    places.sort(key=lambda place: len(tokens[place]))
    for start in range(0, len(places), _BATCH):
        yield places[start : start + _BATCH]


def _padded(tokens: Sequence[Tokens], padding: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids and attention mask, both of shape (texts, longest); padded on the right."""
    longest = max(map(len, tokens))
    ids = torch.full((len(tokens), longest), padding)
    mask = torch.zeros_like(ids)
    for row, found in enumerate(tokens):
        ids[row, : len(found)] = torch.tensor(found)
        mask[row, : len(found)] = 1
    return ids, mask


def _refusal(source: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        "messplus.encoder",
        source,
        "an encoder whose weights (safetensors) are in that folder or in the local cache of "
        f"Hugging Face; before the start run `hf download {source}`{reason}",
    )
