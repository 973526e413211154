"""Encoders from files, exported to ONNX, static embeddings, or any transformer of Hugging Face:
pooled over their own tokens, named by their weights, and never downloaded."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from safetensors.numpy import load_file as load_arrays
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModel

from litellm_messplus.encoders.bounds import fingerprint
from litellm_messplus.encoders.onnx import OnnxEncoder
from litellm_messplus.encoders.static import StaticEncoder
from litellm_messplus.encoders.transformer import TransformerEncoder
from litellm_messplus.prediction.encoder import Conversation, Encoder, FeatureRows, Turn
from litellm_messplus.runtime.errors import ConfigurationError
from tests.support.tiny_encoder import (
    DIMENSION,
    build_tokenizer,
    change_weights_of,
    save_onnx,
    save_static,
    save_transformer,
)

TEXTS = ["short", "of a length between", "and one that is much longer than the others " * 4]


@dataclass(frozen=True)
class Kind:
    """A kind of encoder: how a tiny one is saved and loaded, the name that its folder gives it, how
    much it reads, and the files without which it does not load."""

    save: Callable[[Path], Path]
    load: Callable[[Path], Encoder]
    name: str
    characters: int
    files: tuple[str, ...]


KINDS = {
    "onnx": Kind(save_onnx, OnnxEncoder, "onnx:tiny@", 1024, ("model.onnx", "tokenizer.json")),
    "static": Kind(
        *(save_static, StaticEncoder, "static:tiny@", 2048),
        ("model.safetensors", "tokenizer.json", "config.json"),
    ),
    "transformer": Kind(
        *(save_transformer, lambda folder: TransformerEncoder(str(folder)), "tiny-mean-256@", 1024),
        ("model.safetensors", "config.json"),
    ),
}


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: kind.save(tmp_path_factory.mktemp(name) / "tiny") for name, kind in KINDS.items()}


@pytest.fixture
def copy(kind: Kind, folders: dict[str, Path], tmp_path: Path) -> Path:
    (folder,) = (folders[name] for name, each in KINDS.items() if each is kind)
    return shutil.copytree(folder, tmp_path / "tiny")


@pytest.fixture(scope="module")
def exported(folders: dict[str, Path]) -> OnnxEncoder:
    return OnnxEncoder(folders["onnx"])


@pytest.fixture(scope="module")
def static(folders: dict[str, Path]) -> StaticEncoder:
    return StaticEncoder(folders["static"])


@pytest.fixture(scope="module")
def transformer(folders: dict[str, Path]) -> TransformerEncoder:
    return TransformerEncoder(str(folders["transformer"]))


def onnx_copy(folders: dict[str, Path], tmp_path: Path) -> Path:
    return shutil.copytree(folders["onnx"], tmp_path / "tiny")


def test_what_is_read_is_bounded_and_ends_with_the_last_turn(kind: Kind, copy: Path) -> None:
    turns = (Turn("system", "Be brief. " * 400), Turn("user", "Why?"))
    encoder = kind.load(copy)
    read = encoder.read(Conversation(turns))
    assert (len(read), encoder.dimension) == (kind.characters, DIMENSION)
    assert read.startswith("Be brief.")
    assert read.endswith("\nWhy?")


def test_a_name_tells_the_weights_and_not_the_place(kind: Kind, copy: Path, tmp_path: Path) -> None:
    name = kind.load(copy).name
    assert name.startswith(kind.name)
    moved = shutil.copytree(copy, tmp_path / "elsewhere" / "tiny")
    (moved / "README.md").write_text("read me")
    assert kind.load(moved).name == name
    if "model.onnx" in kind.files:
        moved = save_onnx(tmp_path / "other" / "tiny", seed=1)
    else:
        change_weights_of(moved)
    assert kind.load(moved).name != name


def test_a_folder_that_holds_something_else_is_refused(kind: Kind, copy: Path) -> None:
    for broken in kind.files:
        whole = (copy / broken).read_bytes()
        (copy / broken).write_bytes(b"something else")
        with pytest.raises(ConfigurationError, match="this one could not be loaded"):
            kind.load(copy)
        (copy / broken).write_bytes(whole)


@pytest.mark.parametrize(
    ("load", "source", "words"),
    [
        *(
            (TransformerEncoder, source, f"run `hf download {source}`")
            for source in ("someone/nowhere", "no-such-folder/at/all", "/no/folder", "")
        ),
        (lambda source: StaticEncoder(Path(source)), "someone/nowhere", "hf download minishlab/"),
        (lambda source: OnnxEncoder(Path(source)), "someone/nowhere", "hf download sentence-"),
    ],
)
def test_weights_that_are_not_there_get_a_hint_and_are_looked_for_nowhere_else(
    load: Callable[[str], Encoder], source: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *given, **named: pytest.fail("a download"))
    with pytest.raises(ConfigurationError, match=words) as raised:
        load(source)
    assert raised.value.key == "messplus.encoder"
    assert str(raised.value.given).endswith(source)


@pytest.mark.parametrize("name", ["onnx", "transformer"])
def test_the_last_tokens_count_and_those_before_the_bound_do_not(
    name: str, folders: dict[str, Path]
) -> None:
    """254 bytes and two marks are 256 tokens."""
    encoder, end = KINDS[name].load(folders[name]), "e" * 250 + "last"
    whole = encoder.encode([end])
    assert np.array_equal(encoder.encode(["not read" * 9 + end]), whole)
    assert not np.array_equal(encoder.encode([end[:-1] + "?"]), whole)
    assert not np.array_equal(encoder.encode(["?" + end[1:]]), whole)


@pytest.mark.parametrize("name", ["onnx", "transformer"])
def test_a_text_without_tokens_is_encoded(
    name: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    """As with a tokenizer that puts no marks around a text."""
    copy = shutil.copytree(folders[name], tmp_path / "tiny")
    content = json.loads((copy / "tokenizer.json").read_text())
    (copy / "tokenizer.json").write_text(json.dumps({**content, "post_processor": None}))
    rows = KINDS[name].load(copy).encode(["", "words", ""])
    assert np.isfinite(rows).all()
    if name == "transformer":
        assert rows.any(axis=1).tolist() == [False, True, False]


# Exported to ONNX


def mean_by_hand(folder: Path, text: str) -> FeatureRows:
    """The tiny model gives every token's own vector."""
    table = numpy_helper.to_array(onnx.load(folder / "model.onnx").graph.initializer[0])
    return np.asarray(table[build_tokenizer().encode(text).ids].mean(axis=0))


def test_features_of_onnx_are_the_mean_over_the_tokens_or_the_models_own(tmp_path: Path) -> None:
    for is_pooled in (False, True):
        folder = save_onnx(tmp_path / str(is_pooled), pooled=is_pooled)
        found = OnnxEncoder(folder).encode(["a word"])[0]
        np.testing.assert_allclose(found, mean_by_hand(folder, "a word"), rtol=1e-5, atol=1e-6)


def test_the_model_may_lie_where_sentence_transformers_put_it(
    exported: OnnxEncoder, folders: dict[str, Path], tmp_path: Path
) -> None:
    copy = onnx_copy(folders, tmp_path)
    (copy / "onnx").mkdir()
    (copy / "model.onnx").rename(copy / "onnx" / "model.onnx")
    assert np.array_equal(OnnxEncoder(copy).encode(["a word"]), exported.encode(["a word"]))


def test_a_tokenizer_s_own_bound_and_padding_are_its_model_s(
    exported: OnnxEncoder, folders: dict[str, Path], tmp_path: Path
) -> None:
    copy = onnx_copy(folders, tmp_path)
    tokenizer = Tokenizer.from_file(str(copy / "tokenizer.json"))
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(copy / "tokenizer.json"))
    bounded = OnnxEncoder(copy)
    assert np.array_equal(bounded.encode(["forget: a word"]), exported.encode(["a word"]))
    assert np.array_equal(bounded.encode(["a"]), exported.encode(["a"]))


def test_a_model_that_wants_more_than_tokens_is_refused(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    copy = onnx_copy(folders, tmp_path)
    model = onnx.load(copy / "model.onnx")
    model.graph.input[1].name = "pixel_values"
    onnx.save(model, copy / "model.onnx")
    with pytest.raises(ConfigurationError, match="this one wants pixel_values too"):
        OnnxEncoder(copy)


# Static embeddings


def test_static_features_are_the_mean_of_the_vectors_of_unit_length(
    static: StaticEncoder, folders: dict[str, Path]
) -> None:
    """A text without tokens is the zero vector; the end counts beyond what model2vec takes."""
    vectors = load_arrays(folders["static"] / "model.safetensors")["embeddings"]
    ids = build_tokenizer().encode("a word", add_special_tokens=False).ids
    mean = vectors[ids].mean(axis=0)
    rows = static.encode(["a word", "", "word " * 200 + "north", "word " * 200 + "zzzzz"])
    np.testing.assert_allclose(rows[0], mean / np.linalg.norm(mean), rtol=1e-5)
    assert not rows[1].any()
    assert not np.array_equal(rows[2], rows[3])


# Transformers


def test_features_are_the_mean_of_the_last_layer(
    transformer: TransformerEncoder, folders: dict[str, Path]
) -> None:
    ids = torch.tensor([build_tokenizer().encode(TEXTS[1]).ids])
    with torch.no_grad():
        states = AutoModel.from_pretrained(folders["transformer"])(input_ids=ids).last_hidden_state
    expected = states[0].mean(dim=0).numpy()
    np.testing.assert_allclose(transformer.encode([TEXTS[1]])[0], expected, rtol=1e-5, atol=1e-6)


def test_more_texts_than_a_batch_keep_their_order(transformer: TransformerEncoder) -> None:
    """Padding changes nothing beyond rounding."""
    texts = [TEXTS[number % 3] + str(number) for number in range(70)]
    alone = np.concatenate([transformer.encode([text]) for text in texts])
    np.testing.assert_allclose(transformer.encode(texts), alone, rtol=1e-4, atol=1e-5)


def test_nothing_is_trained_and_nothing_is_dropped(transformer: TransformerEncoder) -> None:
    assert torch.get_num_threads() <= max(1, len(os.sched_getaffinity(0)) - 1)  # one is the loop's
    assert not transformer._model.training
    assert not any(weights.requires_grad for weights in transformer._model.parameters())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_when_there_is_one(transformer: TransformerEncoder) -> None:
    assert {weights.device.type for weights in transformer._model.parameters()} == {"cuda"}


def test_a_name_on_hugging_face_is_looked_up_in_the_local_cache(
    transformer: TransformerEncoder,
    folders: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(folders["transformer"], repository / "snapshots" / "0123abcd")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0123abcd")
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path))
    found = TransformerEncoder("someone/tiny")
    assert found.name == transformer.name
    assert np.array_equal(found.encode(TEXTS), transformer.encode(TEXTS))


def test_a_model_that_lacks_weights_is_refused_as_they_would_be_random(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    copy = shutil.copytree(folders["transformer"], tmp_path / "tiny")
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
