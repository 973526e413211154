"""A snapshot is the state exactly: what is loaded goes on as if it had never been saved."""

from io import BytesIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.learning.entries import Entry
from litellm_messplus.learning.snapshot import dump, fingerprint, load
from litellm_messplus.learning.zoo_state import ZooState
from litellm_messplus.zoo import Zoo
from tests.unit.builders import (
    LARGE,
    MEDIUM,
    PRICES,
    SMALL,
    PairEncoder,
    build_state,
    build_zoo,
    decided,
    example,
    labelled,
    pair,
    settled,
)

ENCODER = PairEncoder.name

names = st.sampled_from([SMALL, MEDIUM, LARGE])
levels = st.sampled_from(["default", "gold", "ünï cødé", ""])
shares = st.floats(0.0, 1.0)
vectors = st.builds(pair, st.floats(-2, 2, width=32), st.floats(-2, 2, width=32))
examples = st.builds(
    lambda name, features, explored: example(name, features=features, is_exploration=explored),
    names,
    vectors,
    st.booleans(),
)
entries: st.SearchStrategy[list[Entry]] = st.lists(
    st.one_of(
        st.builds(decided, levels),
        st.builds(
            lambda name, characters, prompt, completion, seen, share: settled(
                name,
                prompt_characters=characters,
                prompt_tokens=prompt,
                completion_tokens=completion,
                example=seen,
                satisfaction=share,
            ),
            names,
            st.integers(0, 5000),
            st.none() | st.integers(0, 2000),
            st.none() | st.integers(0, 2000),
            st.none() | examples,
            st.none() | shares,
        ),
        st.builds(
            lambda share, level, alpha, served, previous, seen: labelled(
                share,
                service_level=level,
                alpha=alpha,
                is_served=served,
                previous=previous,
                example=seen,
            ),
            shares,
            levels,
            st.floats(0.01, 0.99),
            st.booleans(),
            st.none() | shares,
            st.none() | examples,
        ),
    ),
    max_size=30,
)


def fold(state: ZooState, folded: list[Entry]) -> ZooState:
    for entry in folded:
        state.apply(entry)
    return state


def same(one: ZooState, other: ZooState) -> bool:
    """Bit for bit, compared part by part and not by what ``dump`` looks at."""
    return (
        one.levels == other.levels
        and one.estimators == other.estimators
        and one.heads.candidates == other.heads.candidates
        and one.heads.weights.tobytes() == other.heads.weights.tobytes()
        and one.heads.velocity.tobytes() == other.heads.velocity.tobytes()
    )


@given(entries, st.integers(0, 30))
def test_going_on_from_a_snapshot_is_going_on(folded: list[Entry], cut: int) -> None:
    whole = fold(build_state(), folded)
    resumed = load(dump(fold(build_state(), folded[:cut])), build_state())
    assert same(fold(resumed, folded[cut:]), whole)


@given(entries)
def test_the_same_state_is_the_same_bytes(folded: list[Entry]) -> None:
    state = fold(build_state(), folded)
    assert dump(load(dump(state), build_state())) == dump(state)


def test_another_order_of_the_candidates_is_the_same_zoo() -> None:
    turned = build_zoo({name: PRICES[name] for name in (LARGE, SMALL, MEDIUM)})
    assert fingerprint(turned, ENCODER) == fingerprint(build_zoo(), ENCODER)
    state = fold(
        build_state(), [labelled(1.0, example=example(LARGE)), settled(SMALL, completion_tokens=3)]
    )
    loaded = load(dump(state), build_state(turned))
    ask = pair(1.0, 0.5), (SMALL, MEDIUM, LARGE)
    assert loaded.heads.predict(*ask) == state.heads.predict(*ask)
    assert loaded.heads.predict(*ask)[2] > 0.5
    assert loaded.estimators == state.estimators


@pytest.mark.parametrize(
    "zoo",
    [
        build_zoo({SMALL: PRICES[SMALL], LARGE: PRICES[LARGE]}),
        build_zoo(learning_rate=0.07),
        build_zoo(momentum=0.8),
        build_zoo(weight_decay=0.02),
    ],
    ids=["candidates", "learning rate", "momentum", "weight decay"],
)
def test_what_the_fold_depends_on_changes_the_fingerprint(zoo: Zoo) -> None:
    assert fingerprint(zoo, ENCODER) != fingerprint(build_zoo(), ENCODER)


def test_the_encoder_changes_the_fingerprint() -> None:
    assert fingerprint(build_zoo(), "another-1") != fingerprint(build_zoo(), ENCODER)


def test_promises_and_prices_do_not_change_the_fingerprint() -> None:
    """The log keeps the alpha of each request; V, c and prices matter to decisions only."""
    dearer = {name: type(price)(9.0, 9.0) for name, price in PRICES.items()}
    other = build_zoo(dearer, alpha=0.99, V=7.0, c=0.5, service_levels={"gold": {"alpha": 0.5}})
    assert fingerprint(other, ENCODER) == fingerprint(build_zoo(), ENCODER)


WHOLE = dump(fold(build_state(), [labelled(1.0, example=example())]))


@pytest.mark.parametrize(
    "data",
    [b"", b"no snapshot", WHOLE[: len(WHOLE) // 2], WHOLE[:20]],
    ids=["empty", "garbage", "cut short", "cut very short"],
)
def test_bytes_that_are_no_snapshot_are_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - numpy's and json's own words
        load(data, build_state())


def test_a_snapshot_that_lacks_a_candidate_is_a_value_error() -> None:
    fewer = build_state(build_zoo({SMALL: PRICES[SMALL], LARGE: PRICES[LARGE]}))
    with pytest.raises(ValueError, match="medium"):
        load(dump(fewer), build_state())


def test_a_snapshot_is_no_pickle() -> None:
    """What is loaded from a database must not be able to run code."""
    pickled = np.array([{"any": "object"}], dtype=object)
    buffer = BytesIO()
    np.savez(buffer, plain=pickled, weights=pickled, velocity=pickled)
    with pytest.raises(ValueError, match="allow_pickle"):
        load(buffer.getvalue(), build_state())
