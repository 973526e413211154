"""An encoder from a folder or by name, any transformer of Hugging Face: pooled over its own tokens,
named by its weights, and never downloaded."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from litellm_messplus.core.encoder import Conversation, Turn
from litellm_messplus.encoders.bounds import fingerprint
from litellm_messplus.encoders.transformer import TransformerEncoder
from litellm_messplus.runtime.errors import ConfigurationError
from tests.support.tiny_encoder import (
    DIMENSION,
    build_tokenizer,
    change_weights_of,
    save_transformer,
)

TEXTS = ["short", "of a length between", "and one that is much longer than the others " * 4]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_transformer(tmp_path_factory.mktemp("transformer") / "tiny")


@pytest.fixture(scope="module")
def transformer(folder: Path) -> TransformerEncoder:
    return TransformerEncoder(str(folder))


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(folder, tmp_path / "tiny")


def test_what_is_read_is_bounded_with_the_last_turn(transformer: TransformerEncoder) -> None:
    turns = (Turn("system", "Be brief. " * 400), Turn("user", "Why?"))
    read = transformer.read(Conversation(turns))
    assert (len(read), transformer.dimension) == (1024, DIMENSION)
    assert read.startswith("Be brief.")
    assert read.endswith("\nWhy?")


def test_a_name_tells_weights_and_not_places(transformer: TransformerEncoder, copy: Path) -> None:
    assert transformer.name.startswith("tiny-mean-256@")
    (copy / "README.md").write_text("read me")
    assert TransformerEncoder(str(copy)).name == transformer.name
    change_weights_of(copy)
    assert TransformerEncoder(str(copy)).name != transformer.name


@pytest.mark.parametrize("broken", ["model.safetensors", "config.json"])
def test_a_folder_that_holds_something_else_is_refused(copy: Path, broken: str) -> None:
    (copy / broken).write_bytes(b"something else")
    with pytest.raises(ConfigurationError, match="this one could not be loaded"):
        TransformerEncoder(str(copy))


@pytest.mark.parametrize("source", ["someone/nowhere", "no-such-folder/at/all", "/no/folder", ""])
def test_missing_weights_are_sought_nowhere(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *given, **named: pytest.fail("a download"))
    with pytest.raises(ConfigurationError, match=f"run `hf download {source}`") as raised:
        TransformerEncoder(source)
    assert (raised.value.key, raised.value.given) == ("messplus.encoder", source)


def test_the_last_tokens_count_and_none_before_the_bound(transformer: TransformerEncoder) -> None:
    """254 bytes and two marks are 256 tokens."""
    end = "e" * 250 + "last"
    whole = transformer.encode([end])
    assert np.array_equal(transformer.encode(["not read" * 9 + end]), whole)
    assert not np.array_equal(transformer.encode([end[:-1] + "?"]), whole)
    assert not np.array_equal(transformer.encode(["?" + end[1:]]), whole)


def test_a_text_without_tokens_is_the_zero_vector(copy: Path) -> None:
    """As with a tokenizer that puts no marks around a text."""
    content = json.loads((copy / "tokenizer.json").read_text())
    (copy / "tokenizer.json").write_text(json.dumps({**content, "post_processor": None}))
    rows = TransformerEncoder(str(copy)).encode(["", "words", ""])
    assert np.isfinite(rows).all()
    assert rows.any(axis=1).tolist() == [False, True, False]


def test_features_are_the_last_layers_mean(transformer: TransformerEncoder, folder: Path) -> None:
    ids = torch.tensor([build_tokenizer().encode(TEXTS[1]).ids])
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder)(input_ids=ids).last_hidden_state
    expected = states[0].mean(dim=0).numpy()
    np.testing.assert_allclose(transformer.encode([TEXTS[1]])[0], expected, rtol=1e-5, atol=1e-6)


def test_more_texts_than_a_batch_keep_their_order(transformer: TransformerEncoder) -> None:
    """Padding changes nothing beyond rounding."""
    texts = [TEXTS[number % 3] + str(number) for number in range(70)]
    alone = np.concatenate([transformer.encode([text]) for text in texts])
    np.testing.assert_allclose(transformer.encode(texts), alone, rtol=1e-4, atol=1e-5)


def test_nothing_is_trained_and_nothing_is_dropped(transformer: TransformerEncoder) -> None:
    assert torch.get_num_threads() == 1  # the event loop needs a core too
    assert not transformer._model.training
    assert not any(weights.requires_grad for weights in transformer._model.parameters())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_when_there_is_one(transformer: TransformerEncoder) -> None:
    assert {weights.device.type for weights in transformer._model.parameters()} == {"cuda"}


def test_a_name_on_hugging_face_is_looked_up_in_the_local_cache(
    transformer: TransformerEncoder, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(folder, repository / "snapshots" / "0123abcd")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0123abcd")
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path))
    found = TransformerEncoder("someone/tiny")
    assert found.name == transformer.name
    assert np.array_equal(found.encode(TEXTS), transformer.encode(TEXTS))


def test_a_model_that_lacks_weights_is_refused_as_they_would_be_random(copy: Path) -> None:
    weights = load_file(copy / "model.safetensors")
    del weights["final_norm.weight"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigurationError, match=r"lacks 1 weights, as final_norm\.weight"):
        TransformerEncoder(str(copy))


# Names for weights

SMALL, LARGE = 100_000, 20_000_000


def write(folder: Path, **contents: bytes | bytearray) -> str:
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / f"{name}.bin").write_bytes(content)
    return fingerprint(folder, ["*.bin"])


def test_is_the_same_for_the_same_files_whatever_else_lies_there(tmp_path: Path) -> None:
    first = write(tmp_path / "one", weights=b"abc", words=b"def")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "README.md").write_text("read me")
    assert write(tmp_path / "two", words=b"def", weights=b"abc") == first
    assert len(first) == 12


@pytest.mark.parametrize(
    ("size", "at", "length"),
    [
        *((SMALL, 0, 1), (SMALL, SMALL // 2, 1), (SMALL, SMALL - 1, 1)),
        *((LARGE, 0, 1), (LARGE, LARGE - 1, 1), (LARGE, LARGE // 3, LARGE // 60)),
    ],
)
def test_one_byte_of_a_small_file_counts_and_a_sixtieth_of_a_large_one(
    tmp_path: Path, size: int, at: int, length: int
) -> None:
    """Its beginning and its end count too: no tensor of weights escapes that is larger."""
    content = bytearray(size)
    first = write(tmp_path, weights=content)
    content[at : at + length] = b"\1" * length
    assert write(tmp_path, weights=content) != first


def test_size_name_and_number_of_the_files_count(tmp_path: Path) -> None:
    found = {
        write(tmp_path / "a", weights=bytes(LARGE)),
        write(tmp_path / "b", weights=bytes(LARGE + 1)),
        write(tmp_path / "c", other=bytes(LARGE)),
        write(tmp_path / "d", weights=bytes(LARGE), other=b""),
    }
    assert len(found) == 4
