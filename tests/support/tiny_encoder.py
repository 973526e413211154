"""Encoders of a few thousand weights, saved as the real ones are: no download, a second to make."""

from pathlib import Path

import numpy as np
import onnx
import torch
from model2vec import StaticModel
from onnx import TensorProto, helper, numpy_helper
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


def save_static(folder: Path, seed: int = 0) -> Path:
    """Random vectors in model2vec's own format."""
    tokenizer = build_tokenizer()
    shape = (tokenizer.get_vocab_size(), DIMENSION)
    vectors = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    StaticModel(vectors, tokenizer, normalize=True).save_pretrained(folder)
    return folder


def save_onnx(folder: Path, seed: int = 0, *, pooled: bool = False) -> Path:
    """A table of random vectors; with ``pooled`` the model itself takes their mean."""
    tokenizer = build_tokenizer()
    shape = (tokenizer.get_vocab_size(), DIMENSION)
    vectors = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    output = "sentence_embedding" if pooled else "last_hidden_state"
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["states"])]
    if pooled:
        nodes.append(helper.make_node("ReduceMean", ["states"], [output], axes=[1], keepdims=0))
    else:
        nodes.append(helper.make_node("Identity", ["states"], [output]))
    sizes = ["texts", DIMENSION] if pooled else ["texts", "tokens", DIMENSION]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        inputs,
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, sizes)],
        [numpy_helper.from_array(vectors, "table")],
    )
    folder.mkdir(parents=True, exist_ok=True)
    operators = [helper.make_opsetid("", 17)]
    onnx.save(
        helper.make_model(graph, opset_imports=operators, ir_version=9), folder / "model.onnx"
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def change_weights_of(folder: Path) -> None:
    """As training would: another number at the end of the file, and the same size."""
    (path,) = folder.glob("model.*")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
