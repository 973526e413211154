"""Every form of the setting finds its encoder, or says what to do before the proxy starts."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from litellm_messplus.conformance.encoders import FakeEncoder
from litellm_messplus.encoders.lookup import NoEncoder, load_encoder
from litellm_messplus.encoders.onnx import OnnxEncoder
from litellm_messplus.encoders.static import StaticEncoder
from litellm_messplus.encoders.transformer import TransformerEncoder
from litellm_messplus.prediction.encoder import FeatureRows
from litellm_messplus.prediction.hashed_ngrams import HashedNgrams
from litellm_messplus.runtime.errors import ConfigurationError
from tests.support.tiny_encoder import save_onnx, save_static, save_transformer

HERE = __name__
instance = FakeEncoder(5)
no_encoder = "a text"
all_members_its_own = NoEncoder  # a class that has them before it is made


def make() -> FakeEncoder:
    return FakeEncoder(6)


class Holder:
    encoder = FakeEncoder(7)


class Failing(FakeEncoder):
    def __init__(self) -> None:
        super().__init__(failure=RuntimeError("out of memory"))


class Misshapen(FakeEncoder):
    def encode(self, texts: Sequence[str]) -> FeatureRows:
        return super().encode(texts)[:, 1:]


class NotFinite(FakeEncoder):
    def encode(self, texts: Sequence[str]) -> FeatureRows:
        return np.full((len(texts), self.dimension), np.nan, dtype=np.float32)


def explode() -> None:
    raise RuntimeError("no such weights")


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])


def test_the_embedded_one() -> None:
    assert isinstance(load_encoder("hashed-ngrams"), HashedNgrams)


def test_folders(tmp_path: Path) -> None:
    static = save_static(tmp_path / "static")
    exported = save_onnx(tmp_path / "onnx")
    transformer = save_transformer(tmp_path / "transformer")
    assert isinstance(load_encoder(f"static:{static}"), StaticEncoder)
    assert isinstance(load_encoder(f"onnx:{exported}"), OnnxEncoder)
    assert isinstance(load_encoder(str(transformer)), TransformerEncoder)


@pytest.mark.parametrize(
    ("attribute", "dimension"),
    [
        ("instance", 5),
        ("make", 6),
        ("Holder.encoder", 7),
        ("FakeEncoder", 8),
        ("all_members_its_own", 1),
    ],
)
def test_one_of_a_third_party_by_its_dotted_path(attribute: str, dimension: int) -> None:
    assert load_encoder(f"{HERE}:{attribute}").dimension == dimension


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("no.such.module:encoder", "No module named 'no'"),
        (f"{HERE}:nothing", "has no attribute 'nothing'"),
        (f"{HERE}:no_encoder", "is not callable"),
        (f"{HERE}:explode", "no such weights"),
        (f"{HERE}:Path", "an encoder with name, dimension, is_fast, read, encode"),
        (f"{HERE}:Failing", "out of memory"),
        (f"{HERE}:Misshapen", r"shape \(1, 8\); this one gave shape \(1, 7\)"),
        (f"{HERE}:NotFinite", "finite features"),
        ("static:/no/such/folder", "hf download"),
        ("onnx:/no/such/folder", "hf download"),
        ("static:", "hf download"),
        ("someone/no-such-encoder", "hf download someone/no-such-encoder"),
    ],
)
def test_what_cannot_be_honoured_is_refused_before_the_start(setting: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as raised:
        load_encoder(setting)
    assert (raised.value.key, raised.value.given) == ("messplus.encoder", setting)


def test_a_model_that_loads_and_does_not_run_is_refused(tmp_path: Path) -> None:
    folder = save_onnx(tmp_path)
    model = onnx.load(folder / "model.onnx")
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((1, 4), "f"), "table"))
    model.graph.output[0].type.tensor_type.shape.dim[2].dim_value = 4
    onnx.save(model, folder / "model.onnx")
    with pytest.raises(ConfigurationError, match="an encoder that runs"):
        load_encoder(f"onnx:{folder}")


@pytest.mark.parametrize(
    ("module", "package", "setting", "extra"),
    [
        ("static", "model2vec", "static:folder", "static"),
        ("onnx", "onnxruntime", "onnx:folder", "onnx"),
        ("transformer", "torch", "someone/encoder", "transformers"),
    ],
)
def test_packages_that_are_missing_are_named(
    module: str, package: str, setting: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"litellm_messplus.encoders.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigurationError, match=r"pip install 'litellm-messplus\[" + extra):
        load_encoder(setting)


def test_neither_the_lookup_nor_the_embedded_one_imports_what_only_others_need() -> None:
    code = (
        "import sys; from litellm_messplus.encoders.lookup import load_encoder;"
        "load_encoder('hashed-ngrams');"
        "sys.exit(bool({'torch', 'transformers', 'onnxruntime', 'model2vec'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
