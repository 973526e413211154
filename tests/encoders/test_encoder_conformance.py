"""Every encoder that is shipped keeps to the protocol, and the checks find those that do not."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litellm_messplus.conformance import check_encoder
from litellm_messplus.core.encoder import Conversation, Encoder, FeatureRows
from litellm_messplus.encoders.lookup import load_encoder
from tests.support.fake_encoder import FakeEncoder
from tests.support.markdown import ROOT, Document
from tests.support.tiny_encoder import save_transformer

SHIPPED: dict[str, Callable[[Path], str]] = {
    "hashed n-grams": lambda folder: "hashed-ngrams",
    "fake": lambda folder: "tests.support.fake_encoder:FakeEncoder",
    "transformer": lambda folder: str(save_transformer(folder)),
}


@pytest.fixture(scope="module", params=SHIPPED)
def setting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return SHIPPED[request.param](tmp_path_factory.mktemp("encoder"))


def test_every_encoder_that_is_shipped_passes(setting: str) -> None:
    check_encoder(lambda: load_encoder(setting))


class Broken(FakeEncoder):
    """The fake with one fault, named by the check that must find it."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault
        self.calls = 0
        self.buffer = np.zeros((0, 0), dtype=np.float32)
        if fault == "no name":
            self.name = ""
        if fault == "slow":
            self.delay_seconds = 0.01

    def read(self, conversation: Conversation) -> str:
        read = super().read(conversation)
        self.calls += 1
        match self.fault:
            case "reads its last turn alone":
                return conversation.last
            case "reads the beginning":
                return read[:1000]
            case "reads other words each time":
                return read + str(self.calls)
        return read

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        if self.fault == "needs a text" and not texts:
            raise ValueError("no texts")
        rows = super().encode(texts)
        self.calls += 1
        match self.fault:
            case "not finite":
                rows[[text == "" for text in texts]] = np.nan
            case "other features each time":
                rows += self.calls
            case "depends on the batch" if len(texts) > 1:
                rows -= rows.mean(axis=0)
            case "the same for all":
                rows[:] = 1.0
        return rows


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("no name", "name must have"),
        ("slow", "is_fast, but took"),
        ("reads its last turn alone", "must be read whole"),
        ("reads the beginning", "the last turn must be read whole"),
        ("reads other words each time", "what is read must not change"),
        ("needs a text", "no texts"),
        ("not finite", "every feature must be finite"),
        ("other features each time", "features must not change"),
        ("depends on the batch", "must not depend on the batch"),
        ("the same for all", "unlike texts need unlike features"),
    ],
)
def test_a_fault_is_found(fault: str, told: str) -> None:
    with pytest.raises((AssertionError, ValueError), match=told):
        check_encoder(lambda: Broken(fault))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda rows: rows.astype(np.float64), "dtype must be float32"),
        (lambda rows: rows[:, :-1], "shape must be"),
        (lambda rows: rows[0], "shape must be"),
    ],
)
def test_other_shapes_and_types_are_found(
    change: Callable[[FeatureRows], Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = FakeEncoder()
    encode = encoder.encode
    monkeypatch.setattr(encoder, "encode", lambda texts: change(encode(texts)))
    with pytest.raises(AssertionError, match=reason):
        check_encoder(lambda: encoder)


def test_a_buffer_that_is_written_to_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = FakeEncoder()
    encode = encoder.encode
    buffer = np.zeros((1, encoder.dimension), dtype=np.float32)

    def reuse(texts: Sequence[str]) -> FeatureRows:
        buffer[:] = encode(texts)
        return buffer

    monkeypatch.setattr(encoder, "encode", reuse)
    with pytest.raises(AssertionError, match="once they are returned"):
        check_encoder(lambda: encoder)


def test_a_fresh_one_that_is_not_the_same_is_found() -> None:
    made: list[Encoder] = [FakeEncoder(8), FakeEncoder(9)]
    with pytest.raises(AssertionError, match="a fresh one is named"):
        check_encoder(lambda: made.pop(0))
    made = [FakeEncoder(8), Broken("other features each time")]
    with pytest.raises(AssertionError, match="must give the same features"):
        check_encoder(lambda: made.pop(0))


def test_the_documented_example_of_an_own_encoder_passes() -> None:
    page = Document(ROOT / "docs" / "encoders.md")
    (code,) = (
        block.code
        for block in page.blocks
        if block.headings[-1:] == ("Writing your own",) and block.language == "python"
    )
    names: dict[str, Any] = {}
    exec(code, names)
    check_encoder(names["LetterShares"])


def test_the_fake_is_pinned_but_for_delay_and_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = FakeEncoder(3).encode(["a prompt", "\ud800"])
    assert rows[0].tolist() == pytest.approx([-0.565186, -0.255341, -0.376251], abs=1e-6)
    slept: list[float] = []
    monkeypatch.setattr("tests.support.fake_encoder.time.sleep", slept.append)
    encoder = FakeEncoder(is_fast=False, delay_seconds=0.05, failure=RuntimeError("out of memory"))
    with pytest.raises(RuntimeError, match="out of memory"):
        encoder.encode(["a", "b"])
    encoder.failure = None
    assert encoder.encode([]).shape == (0, 8)
    assert (encoder.batches, slept, encoder.is_fast) == ([2, 0], [0.05, 0.05], False)
