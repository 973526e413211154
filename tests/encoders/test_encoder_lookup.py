"""Every form of the setting finds its encoder, or says what to do before the proxy starts."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from litellm_messplus.core.encoder import FeatureRows
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.encoders.lookup import NoEncoder, load_encoder
from litellm_messplus.encoders.transformer import TransformerEncoder
from litellm_messplus.runtime.errors import ConfigurationError
from tests.support.fake_encoder import FakeEncoder
from tests.support.tiny_encoder import save_transformer

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


def test_a_folder(tmp_path: Path) -> None:
    assert isinstance(load_encoder(str(save_transformer(tmp_path))), TransformerEncoder)


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
        ("static:potion-base-8M", "`package.module:attribute`: an encoder of your own"),
        ("onnx:/no/such/folder", "`package.module:attribute`: an encoder of your own"),
        ("someone/no-such-encoder", "hf download someone/no-such-encoder"),
    ],
)
def test_what_cannot_be_honoured_is_refused_before_the_start(setting: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as raised:
        load_encoder(setting)
    assert (raised.value.key, raised.value.given) == ("messplus.encoder", setting)


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "litellm_messplus.encoders.transformer", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'litellm-messplus\[transformers"):
        load_encoder("someone/encoder")


def test_neither_the_lookup_nor_the_embedded_one_imports_what_only_others_need() -> None:
    code = (
        "import sys; from litellm_messplus.encoders.lookup import load_encoder;"
        "load_encoder('hashed-ngrams');"
        "sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
