"""An exported sentence encoder: pooled by itself or by us, one text at a time."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tokenizers import Tokenizer

from litellm_messplus.encoders.onnx import OnnxEncoder
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.prediction.encoder import Conversation, FeatureRows, Turn
from tests.support.tiny_encoder import DIMENSION, build_tokenizer, save_onnx


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_onnx(tmp_path_factory.mktemp("encoders") / "tiny")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> OnnxEncoder:
    return OnnxEncoder(folder)


def mean_by_hand(folder: Path, text: str) -> FeatureRows:
    """The tiny model gives every token's own vector."""
    table = numpy_helper.to_array(onnx.load(folder / "model.onnx").graph.initializer[0])
    return np.asarray(table[build_tokenizer().encode(text).ids].mean(axis=0))


def test_features_are_the_mean_over_the_tokens(encoder: OnnxEncoder, folder: Path) -> None:
    expected = mean_by_hand(folder, "a word")
    np.testing.assert_allclose(encoder.encode(["a word"])[0], expected, rtol=1e-5, atol=1e-6)
    assert encoder.dimension == DIMENSION


def test_a_sentence_embedding_of_the_model_itself_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = save_onnx(tmp_path, pooled=True)
    expected = mean_by_hand(folder, "a word")
    np.testing.assert_allclose(
        OnnxEncoder(folder).encode(["a word"])[0], expected, rtol=1e-5, atol=1e-6
    )


def test_the_model_may_lie_where_sentence_transformers_put_it(
    encoder: OnnxEncoder, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "tiny")
    (copy / "onnx").mkdir()
    (copy / "model.onnx").rename(copy / "onnx" / "model.onnx")
    found = OnnxEncoder(copy)
    assert np.array_equal(found.encode(["a word"]), encoder.encode(["a word"]))


def test_the_last_tokens_count_and_those_before_the_bound_do_not(encoder: OnnxEncoder) -> None:
    end = "e" * 250 + "last"
    whole = encoder.encode([end])
    assert np.array_equal(encoder.encode(["not read" * 9 + end]), whole)
    assert not np.array_equal(encoder.encode(["?" + end[1:]]), whole)
    assert not np.array_equal(encoder.encode([end[:-1] + "?"]), whole)


def test_a_tokenizer_s_own_bound_and_padding_are_its_model_s(
    encoder: OnnxEncoder, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "tiny")
    tokenizer = Tokenizer.from_file(str(copy / "tokenizer.json"))
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(copy / "tokenizer.json"))
    bounded = OnnxEncoder(copy)
    assert np.array_equal(bounded.encode(["forget: a word"]), encoder.encode(["a word"]))
    assert np.array_equal(bounded.encode(["a"]), encoder.encode(["a"]))


def test_a_text_without_tokens_is_encoded(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "tiny")
    content = json.loads((copy / "tokenizer.json").read_text())
    (copy / "tokenizer.json").write_text(json.dumps({**content, "post_processor": None}))
    without_marks = OnnxEncoder(copy)
    assert without_marks._tokenizer.encode("").ids == []
    assert np.isfinite(without_marks.encode([""])).all()


def test_what_is_read_is_bounded_and_ends_with_the_last_turn(encoder: OnnxEncoder) -> None:
    read = encoder.read(Conversation((Turn("system", "Be brief. " * 200), Turn("user", "Why?"))))
    assert len(read) == 1024
    assert read.endswith("\nWhy?")


def test_a_name_tells_the_weights_and_not_the_place(
    encoder: OnnxEncoder, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "tiny")
    assert OnnxEncoder(copy).name == encoder.name
    assert encoder.name.startswith("onnx:tiny@")
    assert OnnxEncoder(save_onnx(tmp_path / "other" / "tiny", seed=1)).name != encoder.name


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_file_that_is_missing_is_told_how_to_get(
    missing: str, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "tiny")
    (copy / missing).unlink()
    with pytest.raises(ConfigurationError, match="by `hf download sentence-transformers/"):
        OnnxEncoder(copy)


@pytest.mark.parametrize("broken", ["model.onnx", "tokenizer.json"])
def test_a_file_that_is_something_else_is_refused(
    broken: str, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "tiny")
    (copy / broken).write_bytes(b"something else")
    with pytest.raises(ConfigurationError, match="this one could not be loaded"):
        OnnxEncoder(copy)


def test_a_model_that_wants_more_than_tokens_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "tiny")
    model = onnx.load(copy / "model.onnx")
    model.graph.input[1].name = "pixel_values"
    onnx.save(model, copy / "model.onnx")
    with pytest.raises(ConfigurationError, match="this one wants pixel_values too"):
        OnnxEncoder(copy)
