"""The fake is a good encoder, but for the delay and the failure that a test asks for."""

import numpy as np
import pytest

from litellm_messplus.conformance.encoders import FakeEncoder

PINNED = [-0.565186, -0.255341, -0.376251]


def test_features_are_pinned_for_all_time_and_lie_within_one() -> None:
    rows = FakeEncoder(3).encode(["a prompt", "\ud800"])
    assert rows[0].tolist() == pytest.approx(PINNED, abs=1e-6)
    assert np.abs(FakeEncoder(500).encode(["x"])).max() <= 1.0


def test_a_delay_is_slept_once_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("litellm_messplus.conformance.encoders.time.sleep", slept.append)
    FakeEncoder(delay_seconds=0.05).encode(["a", "b", "c"])
    assert slept == [0.05]


def test_a_failure_is_raised_until_it_is_taken_away() -> None:
    encoder = FakeEncoder(failure=RuntimeError("out of memory"))
    with pytest.raises(RuntimeError, match="out of memory"):
        encoder.encode(["a"])
    encoder.failure = None
    assert encoder.encode(["a"]).shape == (1, 8)


def test_it_tells_its_batches() -> None:
    encoder = FakeEncoder(is_fast=False)
    encoder.encode(["a", "b"])
    encoder.encode([])
    assert encoder.batches == [2, 0]
    assert not encoder.is_fast
