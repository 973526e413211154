"""A snapshot is the state exactly: what is loaded goes on as if it had never been saved."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from io import BytesIO
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.entries import Entry
from litellm_messplus.core.policy import build_policy
from litellm_messplus.core.snapshot import dump, fingerprint, load
from litellm_messplus.core.surface import read_surface
from litellm_messplus.core.zoo_state import ZooState
from litellm_messplus.costs.price import Price
from litellm_messplus.runtime.vocabulary import Change
from tests.support.builders import (
    LARGE,
    MEDIUM,
    POLICIES,
    PRICES,
    SMALL,
    PairEncoder,
    build_state,
    build_zoo,
    changed,
    decided,
    example,
    labelled,
    pair,
    settled,
)

ENCODER = PairEncoder.name

names = st.sampled_from([SMALL, MEDIUM, LARGE, "new"])
levels = st.sampled_from(["default", "gold", "ünï cødé", ""])
requests = st.sampled_from(["r1", "r2", "ünï-3", "4"])
calls = st.builds("{}.{}".format, requests, st.integers(0, 2))
shares = st.floats(0.0, 1.0)
vectors = st.builds(pair, st.floats(-2, 2, width=32), st.floats(-2, 2, width=32))
surfaces = st.builds(lambda text: read_surface(Conversation.of_text(text)), st.text(max_size=20))
examples = st.builds(
    lambda request_id, name, features, explored, seen: example(
        name, request_id=request_id, features=features, is_exploration=explored, surface=seen
    ),
    requests,
    names,
    st.none() | vectors,
    st.booleans(),
    st.none() | surfaces,
)
entries: st.SearchStrategy[list[Entry]] = st.lists(
    st.one_of(
        st.builds(
            lambda level, request_id, shortfall, calls: decided(
                level, request_id, expected_shortfall=shortfall, calls=calls
            ),
            levels,
            requests,
            st.floats(-0.99, 0.99),
            st.integers(1, 3),
        ),
        st.builds(
            lambda name, call_id, characters, prompt, completion, seen, share: settled(
                name,
                call_id=call_id,
                prompt_characters=characters,
                prompt_tokens=prompt,
                completion_tokens=completion,
                example=seen,
                satisfaction=share,
            ),
            names,
            calls,
            st.integers(0, 5000),
            st.none() | st.integers(0, 2000),
            st.none() | st.integers(0, 2000),
            st.none() | examples,
            st.none() | shares,
        ),
        st.builds(
            lambda share, level, request_id, call_id, alpha, served, previous, weight, seen: (
                labelled(
                    share,
                    service_level=level,
                    request_id=request_id,
                    call_id=call_id,
                    alpha=alpha,
                    is_served=served,
                    previous=previous,
                    weight=weight,
                    example=seen,
                )
            ),
            shares,
            levels,
            requests,
            calls,
            st.floats(0.01, 0.99),
            st.booleans(),
            st.none() | shares,
            st.floats(0.1, 1.0),
            st.none() | examples,
        ),
        st.builds(changed, names, st.sampled_from(Change)),
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
        one.requests == other.requests
        and one.estimators == other.estimators
        and one.catalog == other.catalog
        and inside(one.policy) == inside(other.policy)
        and inside(one.lengths) == inside(other.lengths)
        and inside(one.use) == inside(other.use)
    )


def inside(part: Any) -> object:
    """All that an object holds, to the last attribute, but for what it only keeps at hand."""
    if isinstance(part, np.ndarray):
        return part.shape, part.tobytes()
    if isinstance(part, Mapping):
        return [(key, inside(value)) for key, value in part.items()]
    if isinstance(part, list | tuple):
        return [inside(item) for item in part]
    names: Iterable[str] = getattr(type(part), "__slots__", ()) or getattr(part, "__dict__", ())
    held = [name for name in names if not isinstance(vars(type(part)).get(name), cached_property)]
    return {name: inside(getattr(part, name)) for name in held} or part


def fresh(policy: str) -> ZooState:
    return build_state(build_zoo(policy=policy))


def slow() -> ZooState:
    """Of an encoder that is not fast, whose features the paper's own predictor reads."""
    zoo = build_zoo(policy="paper")
    policy = build_policy(zoo.settings, zoo.candidates, PairEncoder.dimension, is_fast=False)
    return replace(build_state(zoo), policy=policy)


each_policy = pytest.mark.parametrize("policy", POLICIES)


@each_policy
@given(folded=entries, cut=st.integers(0, 30))
def test_going_on_from_a_snapshot_is_going_on(policy: str, folded: list[Entry], cut: int) -> None:
    saved = fold(fresh(policy), folded[:cut])
    resumed = load(dump(saved), fresh(policy))
    assert dump(resumed) == dump(saved)
    assert same(fold(resumed, folded[cut:]), fold(fresh(policy), folded))


@each_policy
def test_what_a_snapshot_must_keep_is_distinguished(policy: str) -> None:
    """Held against ``same`` itself: a comparison that sees nothing would let everything pass."""
    label = labelled(1.0, example=example())
    late = labelled(1.0, example=example(features=None))
    other = labelled(1.0, example=example(features=pair(1.0, 0.25)))
    assert same(fold(fresh(policy), [label]), fold(fresh(policy), [label]))
    states: list[list[Entry]] = [[], [decided()], [label], [late], [other], [labelled(1.0)]]
    states.append([label, labelled(0.0)])
    for one, two in combinations(states, 2):
        assert not same(fold(fresh(policy), one), fold(fresh(policy), two))


@given(folded=entries, cut=st.integers(0, 30))
@settings(max_examples=10)
def test_neural_heads_go_on_from_a_snapshot(folded: list[Entry], cut: int) -> None:
    whole = fold(slow(), folded)
    resumed = load(dump(fold(slow(), folded[:cut])), slow())
    assert dump(fold(resumed, folded[cut:])) == dump(whole)


def test_the_snapshot_of_other_heads_is_a_value_error() -> None:
    """Of an encoder that was fast under the same name, and is not any more."""
    for one, other in ((fresh("paper"), slow()), (slow(), fresh("paper"))):
        with pytest.raises((ValueError, KeyError)):
            load(dump(one), other)


TURNED = {name: PRICES[name] for name in (LARGE, SMALL, MEDIUM)}
FEWER = {SMALL: PRICES[SMALL], LARGE: PRICES[LARGE]}
DEARER = {name: type(price)(9.0, 9.0) for name, price in PRICES.items()}


@each_policy
@pytest.mark.parametrize(
    ("prices", "settings", "is_same"),
    [
        (TURNED, {}, False),
        (FEWER, {}, False),
        (None, {"learning_rate": 0.07}, False),
        (None, {"labels": {"precedence": ["feedback", "judge"]}}, False),
        (DEARER, {"alpha": 0.99, "service_levels": {"gold": {"alpha": 0.5}}}, True),
    ],
    ids=[
        *("another order of the candidates", "fewer of them", "learning rate"),
        *("precedence of labels", "promises and prices"),
    ],
)
def test_what_the_fold_depends_on_changes_the_fingerprint(
    policy: str, prices: dict[str, Price] | None, settings: dict[str, Any], is_same: bool
) -> None:
    """The log keeps the alpha of each request; prices matter to decisions only."""
    if policy == "adaptive" and prices is None and "labels" not in settings:
        pytest.skip("of the paper's predictor")
    plain, other = build_zoo(policy=policy), build_zoo(prices, policy=policy, **settings)
    assert (fingerprint(other, ENCODER) == fingerprint(plain, ENCODER)) == is_same
    assert fingerprint(plain, "another-1") != fingerprint(plain, ENCODER)


def test_the_policy_changes_the_fingerprint_and_the_papers_own_weights_do_not() -> None:
    paper = fingerprint(build_zoo(policy="paper"), ENCODER)
    assert fingerprint(build_zoo(policy="adaptive"), ENCODER) != paper
    assert fingerprint(build_zoo(policy="paper", V=7.0, c=0.5), ENCODER) == paper


WHOLE = {
    policy: dump(fold(fresh(policy), [decided(), labelled(1.0, example=example())]))
    for policy in POLICIES
}


@each_policy
def test_bytes_that_are_no_snapshot_of_such_a_state_are_refused(policy: str) -> None:
    """Empty, cut, of another policy, or of other candidates."""
    whole, (other,) = WHOLE[policy], set(POLICIES) - {policy}
    cuts = [whole[: int(kept * len(whole))] for kept in (0.0, 0.01, 0.5, 0.99)]
    fewer = dump(build_state(build_zoo(FEWER, policy=policy)))
    for data in (*cuts, b"no snapshot", WHOLE[other], fewer):
        with pytest.raises((ValueError, KeyError)):
            load(data, fresh(policy))


@each_policy
def test_a_snapshot_is_no_pickle(policy: str) -> None:
    """What is loaded from a database must not be able to run code."""
    pickled = np.array([{"any": "object"}], dtype=object)
    buffer = BytesIO()
    np.savez(buffer, plain=pickled, weights=pickled, velocity=pickled)
    with pytest.raises(ValueError, match="allow_pickle"):
        load(buffer.getvalue(), fresh(policy))


def test_a_snapshot_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written to the database every so often. Three candidates behind the widest features
    that heads read, with as many labels to revise as are remembered."""
    monkeypatch.setattr(PairEncoder, "dimension", 256)
    state, random = fresh("adaptive"), np.random.default_rng(0)
    for number in range(4500):
        request_id, name = f"{number:032x}", (SMALL, MEDIUM, LARGE)[number % 3]
        seen = example(
            name,
            request_id=request_id,
            features=random.normal(size=256).astype(np.float32),
            surface=read_surface(Conversation.of_text(f"{number} and " * (number % 50))),
        )
        call_id = f"{request_id}.0"
        tokens = int(random.integers(1, 900))
        state.apply(decided(request_id=request_id))
        state.apply(settled(name, call_id=call_id, completion_tokens=tokens, example=seen))
        state.apply(
            labelled(
                float(random.random() < 0.6),
                request_id=request_id,
                call_id=call_id,
                example=seen,
            )
        )
    assert len(dump(state)) <= 2_100_000
    assert same(load(dump(state), fresh("adaptive")), state)
