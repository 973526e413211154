"""Encoders of a few thousand weights, saved as the real ones are: no download, a second to make."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import ModernBertConfig, ModernBertModel, PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[CLS]", "[SEP]"]
DIMENSION = 16


def build_tokenizer() -> Tokenizer:
    """A token for every byte, so that nothing is unknown; `[CLS]` before and `[SEP]` behind."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: place for place, token in enumerate([*SPECIAL, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return tokenizer


def save_transformer(folder: Path, seed: int = 0) -> Path:
    """A ModernBERT of random weights; its local attention is shorter than a batch's padding."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=build_tokenizer(), pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    )
    config = ModernBertConfig(
        vocab_size=len(tokenizer),
        hidden_size=DIMENSION,
        intermediate_size=2 * DIMENSION,
        num_hidden_layers=4,
        num_attention_heads=2,
        local_attention=16,
        max_position_embeddings=512,
        pad_token_id=0,
        cls_token_id=1,
        bos_token_id=1,
        sep_token_id=2,
        eos_token_id=2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = ModernBertModel(config)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def change_weights_of(folder: Path) -> None:
    """As training would: another number at the end of the file, and the same size."""
    (path,) = folder.glob("model.*")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
