"""Joining and ordering recordings."""

import numpy as np
import pytest

from litellm_messplus.replay.recording import ReplayError, concatenate
from tests.support.recordings import recording, synthetic


def test_one_after_the_other() -> None:
    first, second = synthetic(4, seed=1, name="a"), synthetic(6, seed=2, name="b")

    whole = concatenate([first, second])

    assert whole.name == "a + b"
    assert len(whole) == 10
    assert np.array_equal(whole.satisfied[4:], second.satisfied)
    assert [whole.prompts.texts[place] for place in whole.prompt[4:]] == list(second.prompts.texts)
    assert np.array_equal(whole.prompts.features[whole.prompt[4:]], second.prompts.features)


def test_different_zoos_are_no_stream() -> None:
    one = recording([[1, 0]], [[1, 2]])

    with pytest.raises(ReplayError, match="models"):
        concatenate([one, recording([[1, 0]], [[1, 2]], models=("x", "y"))])
    with pytest.raises(ReplayError, match="unit"):
        concatenate([one, recording([[1, 0]], [[1, 2]], unit="USD")])


def test_taken_requests_keep_what_belongs_to_them() -> None:
    whole = synthetic(10)

    taken = whole.take(np.array([7, 2]))

    assert np.array_equal(taken.cost, whole.cost[[7, 2]])
    assert [taken.prompts.texts[place] for place in taken.prompt] == ["request 7", "request 2"]
