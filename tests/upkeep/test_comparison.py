"""Two states of one log are equal to the bit, or it is stated how far apart they are, and where."""

import numpy as np
import pytest

from litellm_messplus.state.zoo_state import ZooState
from litellm_messplus.upkeep.folding import difference_of_states as difference
from tests.support.builders import adaptive_of, build_state, build_zoo, decided, labelled, settled


def state() -> ZooState:
    built = build_state(build_zoo(policy="adaptive"))
    for entry in (decided(), settled(), labelled(1.0)):
        built.apply(entry)
    return built


def test_the_same_log_is_the_same_state() -> None:
    assert difference(state(), state()) is None


def test_another_log_is_another_state() -> None:
    other = state()
    other.apply(labelled(0.0, request_id="r2"))

    found = difference(state(), other)

    assert found is not None
    assert not found.is_rounding


def test_a_missing_part_is_no_rounding() -> None:
    other = state()
    other.requests["gold"] = 1

    found = difference(state(), other)

    assert found is not None
    assert (found.place, found.share) == ("requests.gold", np.inf)


@pytest.mark.parametrize(("by", "is_rounding"), [(1e-9, True), (1e-3, False)])
def test_the_last_digits_are_told_from_the_first(by: float, is_rounding: bool) -> None:
    other = state()
    estimator = other.estimators["large"]
    for mean in estimator.means():
        mean.value *= 1 + by

    found = difference(state(), other)

    assert found is not None
    assert found.is_rounding is is_rounding
    assert found.place.startswith("estimators.large")


def test_what_is_no_number_is_another_state() -> None:
    other = state()
    adaptive_of(other).predictor.heads.average.words[:] = np.nan

    found = difference(state(), other)

    assert found is not None
    assert found.share == np.inf
