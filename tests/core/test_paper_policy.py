"""Which predictor a policy learns with, what it does without features, what waits for labels."""

import subprocess
import sys
from collections.abc import Iterator
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core import snapshot
from litellm_messplus.core.adaptive_policy import AdaptivePolicy
from litellm_messplus.core.encoder import Features
from litellm_messplus.core.entries import Entry
from litellm_messplus.core.head import Label, LinearHeads
from litellm_messplus.core.neural_heads import NeuralHeads
from litellm_messplus.core.paper_policy import EXPLORATION_WAIT_SECONDS, PaperPolicy
from litellm_messplus.core.policy import Policy, build_policy
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.rates import LabelMeans
from litellm_messplus.core.zoo_state import ZooState
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.settings.promise import READ_BY, PolicyName
from tests.support.builders import (
    LARGE,
    MEDIUM,
    SMALL,
    build_state,
    build_zoo,
    decided,
    example,
    labelled,
    pair,
    paper_of,
)
from tests.support.patience import PATIENT

NAMES = (SMALL, MEDIUM, LARGE)
PAPER = build_zoo(policy="paper").settings
READ = pair(1.0, -0.5)


def paper(is_fast: bool) -> PaperPolicy:
    policy = build_policy(PAPER, NAMES, 2, is_fast=is_fast)
    assert isinstance(policy, PaperPolicy)
    return policy


def explore(
    policy: Policy,
    satisfaction: float,
    features: Features | None,
    previous: float | None = None,
    is_exploration: bool = True,
) -> None:
    seen = example(SMALL, features=features, is_exploration=is_exploration)
    replaced = None if previous is None else Label(previous)
    policy.learn(seen, "r1.1", Label(satisfaction), replaced)


def test_each_policy_learns_with_its_own_predictor() -> None:
    """The paper's own behind an encoder that is as slow as the paper's."""
    assert isinstance(paper(is_fast=False).heads, NeuralHeads)
    assert isinstance(paper(is_fast=True).heads, LinearHeads)
    for is_fast in (True, False):
        built = build_policy(build_zoo().settings, NAMES, 2, is_fast=is_fast)
        assert isinstance(built, AdaptivePolicy)
    assert set(READ_BY) == set(get_args(PolicyName))


@pytest.mark.parametrize("is_fast", [True, False])
def test_the_settings_of_sgd_reach_the_heads(is_fast: bool) -> None:
    slower = build_zoo(policy="paper", learning_rate=0.001).settings
    one, other = paper(is_fast), build_policy(slower, NAMES, 2, is_fast=is_fast)
    for policy in (one, other):
        for _ in range(5):
            explore(policy, 1.0, READ)
    assert one.predict(Prompt(READ), [SMALL])[0] > other.predict(Prompt(READ), [SMALL])[0] > 0.5


def test_torch_is_imported_only_for_such_heads() -> None:
    """It takes seconds, and a proxy without a slow encoder need not have it."""
    code = (
        "import sys; import litellm_messplus.core.engine; assert 'torch' not in sys.modules;"
        "from litellm_messplus.core.policy import build_policy;"
        "from litellm_messplus.settings.schema import ZooSettings;"
        "settings = ZooSettings(alpha=0.5, policy='paper');"
        "build_policy(settings, ('a',), 2, is_fast=True); assert 'torch' not in sys.modules;"
        "build_policy(settings, ('a',), 2, is_fast=False); assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENT)


def test_without_torch_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "litellm_messplus.core.neural_heads", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ConfigurationError, match=r"policy: given 'paper'.*\[transformers\]"):
        paper(is_fast=False)


# Features that came too late


@pytest.mark.parametrize("is_fast", [True, False])
def test_under_paper_the_means_of_explored_labels_are_predicted(is_fast: bool) -> None:
    """The heads learn nothing without features."""
    policy = paper(is_fast)
    assert policy.predict(Prompt(None), NAMES) == [0.5, 0.5, 0.5]
    explore(policy, 1.0, READ)
    before = {name: array.tobytes() for name, array in policy.heads.arrays().items()}
    explore(policy, 1.0, None)
    explore(policy, 0.0, None, is_exploration=False)
    assert policy.predict(Prompt(None), [LARGE, SMALL]) == [0.5, 2.5 / 3.0]
    explore(policy, 0.0, None, previous=1.0)
    assert policy.predict(Prompt(None), [LARGE, SMALL]) == [0.5, 1.5 / 3.0]
    assert {name: array.tobytes() for name, array in policy.heads.arrays().items()} == before
    explore(policy, 0.0, READ, previous=1.0)
    assert policy.predict(Prompt(None), [LARGE, SMALL]) == [0.5, 0.5 / 3.0]


def test_means_of_an_unknown_candidate_are_a_key_error() -> None:
    with pytest.raises(KeyError):
        LabelMeans(NAMES).predict(["gone"])
    with pytest.raises(KeyError):
        LabelMeans(NAMES).learn("gone", Label(1.0))


# Policy `paper` learns from an exploration's labels together, or when it has waited enough.

WAITING = build_zoo(policy="paper")
CALLED = (LARGE, SMALL, "medium")


def fold(*entries: Entry) -> ZooState:
    state = build_state(WAITING)
    for entry in entries:
        state.apply(entry)
    return state


def weights(state: ZooState) -> dict[str, bytes]:
    heads = paper_of(state).heads
    return {name: array.tobytes() for name, array in heads.arrays().items()}


def verdicts(*values: float, request_id: str = "r1") -> Iterator[Entry]:
    """On the calls of an exploration, the served one first."""
    for number, (name, value) in enumerate(zip(CALLED, values, strict=False)):
        yield labelled(
            value,
            is_served=number == 0,
            request_id=request_id,
            call_id=f"{request_id}.{number}",
            example=example(name, request_id=request_id, features=pair(1.0, 0.5)),
        )


@given(st.permutations([0, 1, 2]))
def test_nothing_is_learned_before_the_last_label_in_whichever_order(order: list[int]) -> None:
    labels = list(verdicts(1.0, 0.0, 1.0))
    first, second, last = (labels[place] for place in order)
    assert weights(fold(decided(calls=3), first, second)) == weights(fold())
    whole = weights(fold(decided(calls=3), first, second, last))
    assert whole == weights(fold(decided(calls=3), *labels)) != weights(fold())


def test_a_second_verdict_while_it_waits_takes_the_place_of_the_first() -> None:
    wrong, *others = verdicts(0.0, 0.0, 1.0)
    right = labelled(1.0, previous=0.0, call_id="r1.0", example=example(features=pair(1.0, 0.5)))
    revised = fold(decided(calls=3), wrong, right, *others)
    assert weights(revised) == weights(fold(decided(calls=3), *verdicts(1.0, 0.0, 1.0)))


def test_when_the_time_is_up_it_learns_from_what_it_has() -> None:
    explored, some = decided(calls=3, at=1000.0), list(verdicts(1.0, 0.0))
    in_time = fold(explored, *some, decided(request_id="r2", at=1000.0 + EXPLORATION_WAIT_SECONDS))
    too_late = fold(explored, *some, decided(request_id="r2", at=1001.0 + EXPLORATION_WAIT_SECONDS))
    assert weights(in_time) == weights(fold())
    assert weights(too_late) == weights(fold(decided(calls=2), *some))


def test_a_label_that_comes_after_that_teaches_alone() -> None:
    """And an exploration without any is let go."""
    *some, late = verdicts(1.0, 0.0, 1.0)
    waited = fold(
        decided(calls=3), *some, decided(request_id="r2", at=EXPLORATION_WAIT_SECONDS + 1), late
    )
    assert weights(waited) == weights(fold(decided(calls=2), *some, late))
    state = fold(decided(calls=3), decided(request_id="r2", at=EXPLORATION_WAIT_SECONDS + 1))
    assert "r1" not in paper_of(state).waiting
    assert weights(state) == weights(fold())


def test_what_waits_survives_a_snapshot() -> None:
    *some, last = verdicts(1.0, 0.3, 1.0)
    whole = fold(decided(calls=3), *some)
    loaded = snapshot.load(snapshot.dump(whole), build_state(WAITING))
    assert snapshot.dump(loaded) == snapshot.dump(whole)
    for state in (whole, loaded):
        state.apply(last)
    assert weights(loaded) == weights(whole) != weights(fold())
