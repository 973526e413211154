"""Any Hugging Face encoder: frozen, pooled over its own tokens, and never downloaded."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from litellm_messplus.encoders.transformer import TransformerEncoder
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.prediction.encoder import Conversation, Turn
from tests.support.tiny_encoder import DIMENSION, build_tokenizer, save_transformer

TEXTS = ["short", "of a length between", "and one that is much longer than the others " * 4]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_transformer(tmp_path_factory.mktemp("encoders") / "tiny")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> TransformerEncoder:
    return TransformerEncoder(str(folder))


def test_features_are_the_mean_of_the_last_layer(encoder: TransformerEncoder, folder: Path) -> None:
    ids = torch.tensor([build_tokenizer().encode(TEXTS[1]).ids])
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder)(input_ids=ids).last_hidden_state
    expected = states[0].mean(dim=0).numpy()
    np.testing.assert_allclose(encoder.encode([TEXTS[1]])[0], expected, rtol=1e-5, atol=1e-6)


def test_padding_changes_nothing_beyond_rounding(encoder: TransformerEncoder) -> None:
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS), alone, rtol=1e-4, atol=1e-5)


def test_more_texts_than_a_batch_keep_their_order(encoder: TransformerEncoder) -> None:
    texts = [TEXTS[number % 3] + str(number) for number in range(70)]
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    np.testing.assert_allclose(encoder.encode(texts), alone, rtol=1e-4, atol=1e-5)


def test_the_last_tokens_count_and_those_before_the_bound_do_not(
    encoder: TransformerEncoder,
) -> None:
    """254 bytes and two marks are 256 tokens."""
    end = "e" * 250 + "last"
    whole = encoder.encode([end])
    assert np.array_equal(encoder.encode(["not read" * 9 + end]), whole)
    assert not np.array_equal(encoder.encode([end[:-1] + "?"]), whole)
    assert not np.array_equal(encoder.encode(["?" + end[1:]]), whole)


def test_what_is_read_is_bounded_and_ends_with_the_last_turn(encoder: TransformerEncoder) -> None:
    turns = (Turn("system", "Be brief. " * 200), Turn("user", "Why?"))
    read = encoder.read(Conversation(turns))
    assert len(read) == 1024
    assert read.startswith("Be brief.")
    assert read.endswith("\nWhy?")


def test_nothing_is_trained_and_nothing_is_dropped(encoder: TransformerEncoder) -> None:
    assert not encoder._model.training
    assert not any(weights.requires_grad for weights in encoder._model.parameters())


def test_texts_without_tokens_are_the_zero_vector(folder: Path, tmp_path: Path) -> None:
    """As with a tokenizer that puts no marks around a text."""
    copy = shutil.copytree(folder, tmp_path / "tiny")
    content = json.loads((copy / "tokenizer.json").read_text())
    (copy / "tokenizer.json").write_text(json.dumps({**content, "post_processor": None}))
    rows = TransformerEncoder(str(copy)).encode(["", "words", ""])
    assert rows.any(axis=1).tolist() == [False, True, False]


def test_a_core_is_left_to_the_event_loop(encoder: TransformerEncoder) -> None:
    assert torch.get_num_threads() <= max(1, len(os.sched_getaffinity(0)) - 1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_when_there_is_one(encoder: TransformerEncoder) -> None:
    assert {weights.device.type for weights in encoder._model.parameters()} == {"cuda"}


def test_its_dimension_is_the_width_of_the_model(encoder: TransformerEncoder) -> None:
    assert encoder.dimension == DIMENSION
    assert encoder.encode(TEXTS).shape == (3, DIMENSION)


def test_the_same_weights_have_the_same_name_wherever_they_lie(
    encoder: TransformerEncoder, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "tiny")
    (copy / "README.md").write_text("read me")
    assert TransformerEncoder(str(copy)).name == encoder.name
    assert encoder.name.startswith("tiny-mean-256@")


def test_other_weights_have_another_name(encoder: TransformerEncoder, tmp_path: Path) -> None:
    other = TransformerEncoder(str(save_transformer(tmp_path / "tiny", seed=1)))
    assert other.name != encoder.name
    assert not np.allclose(other.encode(TEXTS), encoder.encode(TEXTS))


def test_a_name_on_hugging_face_is_looked_up_in_the_local_cache(
    encoder: TransformerEncoder, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(folder, repository / "snapshots" / "0123abcd")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0123abcd")
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path))
    found = TransformerEncoder("someone/tiny")
    assert found.name == encoder.name
    assert np.array_equal(found.encode(TEXTS), encoder.encode(TEXTS))


@pytest.mark.parametrize("source", ["someone/nowhere", "no-such-folder/at/all", "/no/folder", ""])
def test_weights_that_are_not_there_are_told_how_to_get(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *given, **named: pytest.fail("a download"))
    with pytest.raises(ConfigurationError, match=f"run `hf download {source}`") as raised:
        TransformerEncoder(source)
    assert (raised.value.key, raised.value.given) == ("messplus.encoder", source)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="this one could not be loaded"):
        TransformerEncoder(str(tmp_path))


def test_a_model_that_lacks_weights_is_refused_as_they_would_be_random(
    folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "tiny")
    weights = load_file(copy / "model.safetensors")
    del weights["final_norm.weight"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigurationError, match=r"lacks 1 weights, as final_norm\.weight"):
        TransformerEncoder(str(copy))
