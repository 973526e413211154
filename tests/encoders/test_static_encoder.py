"""Static embeddings: the mean of the tokens' vectors, read from model2vec's own format."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from litellm_messplus.encoders.static import StaticEncoder
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.prediction.encoder import Conversation, Turn
from tests.support.tiny_encoder import (
    DIMENSION,
    build_tokenizer,
    change_weights_of,
    save_static,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_static(tmp_path_factory.mktemp("encoders") / "tiny")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> StaticEncoder:
    return StaticEncoder(folder)


def test_features_are_the_mean_of_the_vectors_of_unit_length(
    encoder: StaticEncoder, folder: Path
) -> None:
    vectors = load_file(folder / "model.safetensors")["embeddings"]
    ids = build_tokenizer().encode("a word", add_special_tokens=False).ids
    mean = vectors[ids].mean(axis=0)
    np.testing.assert_allclose(
        encoder.encode(["a word"])[0], mean / np.linalg.norm(mean), rtol=1e-5
    )
    assert encoder.dimension == DIMENSION


def test_a_text_without_tokens_is_the_zero_vector(encoder: StaticEncoder) -> None:
    assert not encoder.encode([""]).any()


def test_the_end_of_a_text_counts_beyond_the_tokens_that_model2vec_itself_takes(
    encoder: StaticEncoder,
) -> None:
    begin = "word " * 200
    one, other = encoder.encode([begin + "north", begin + "zzzzz"])
    assert not np.array_equal(one, other)


def test_what_is_read_is_bounded_and_ends_with_the_last_turn(encoder: StaticEncoder) -> None:
    read = encoder.read(Conversation((Turn("system", "Be brief. " * 400), Turn("user", "Why?"))))
    assert len(read) == 2048
    assert read.endswith("\nWhy?")


def test_a_name_tells_the_vectors_and_not_the_place(
    encoder: StaticEncoder, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "tiny")
    assert StaticEncoder(copy).name == encoder.name
    assert encoder.name.startswith("static:tiny@")
    change_weights_of(copy)
    assert StaticEncoder(copy).name != encoder.name


def test_a_folder_that_is_missing_is_not_looked_for_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *given, **named: pytest.fail("a download"))
    with pytest.raises(ConfigurationError, match="hf download minishlab/potion-base-8M") as raised:
        StaticEncoder(Path("someone/nowhere"))
    assert raised.value.given == "static:someone/nowhere"


@pytest.mark.parametrize("broken", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_folder_that_holds_something_else_is_refused(
    broken: str, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "tiny")
    (copy / broken).write_bytes(b"something else")
    with pytest.raises(ConfigurationError, match="this one could not be loaded"):
        StaticEncoder(copy)
