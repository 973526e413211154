"""What each entry of the log changes in the state of a zoo, and what it must not."""

from copy import deepcopy

import pytest

from litellm_messplus.learning import snapshot
from litellm_messplus.learning.entries import Entry, Example
from litellm_messplus.learning.zoo_state import ZooState
from tests.unit.builders import (
    LARGE,
    SMALL,
    build_state,
    decided,
    example,
    labelled,
    pair,
    settled,
)


@pytest.fixture
def state() -> ZooState:
    return build_state()


def folded(*entries: Entry) -> ZooState:
    state = build_state()
    for entry in entries:
        state.apply(entry)
    return state


def bits(state: ZooState) -> bytes:
    return snapshot.dump(state)


def learned(state: ZooState) -> bool:
    return bool(state.heads.weights.any())


def probability(state: ZooState, candidate: str = LARGE) -> float:
    (predicted,) = state.heads.predict(pair(1.0, 0.0), [candidate])
    return predicted


def test_a_new_level_starts_without_debt_and_without_requests(state: ZooState) -> None:
    assert (state.level("default").queue, state.level("default").requests) == (0.0, 0)


def test_a_decision_counts_in_its_level_alone() -> None:
    state = folded(decided("gold"), decided("gold", "r2"), decided("default", "r3"))
    assert (state.level("gold").requests, state.level("default").requests) == (2, 1)


def test_a_served_label_moves_the_queue_of_its_level_alone() -> None:
    state = folded(labelled(0.0, service_level="gold", alpha=0.75))
    assert state.level("gold").queue == 0.75
    assert state.level("default").queue == 0.0


def test_the_alpha_that_counts_is_the_one_in_force_at_the_decision() -> None:
    state = folded(labelled(0.0, alpha=0.75), labelled(0.0, alpha=0.5))
    assert state.level("default").queue == 1.25


def test_the_label_of_an_exploration_does_not_move_the_queue() -> None:
    state = folded(labelled(0.0, is_served=False, example=example(SMALL)))
    assert state.level("default").queue == 0.0
    assert probability(state, SMALL) < 0.5


def test_the_served_label_of_an_exploration_moves_the_queue_and_trains() -> None:
    state = folded(labelled(0.0, example=example(LARGE)))
    assert state.level("default").queue == 0.6
    assert probability(state) < 0.5


def test_a_served_label_without_exploration_moves_the_queue_and_trains_nothing() -> None:
    """Algorithm 1: z(t+1) = z(t) unless the request explored."""
    state = folded(labelled(0.0, example=example(LARGE, is_exploration=False)))
    assert state.level("default").queue == 0.6
    assert not learned(state)


@pytest.mark.parametrize(("first", "second"), [(1.0, 0.0), (0.0, 1.0), (0.25, 0.75)])
def test_a_second_verdict_counts_once(first: float, second: float) -> None:
    debt = labelled(0.0, alpha=0.9), labelled(0.0, alpha=0.9)
    once = folded(*debt, labelled(second))
    twice = folded(*debt, labelled(first), labelled(second, previous=first))
    assert twice.level("default").queue == pytest.approx(once.level("default").queue)


def test_a_second_verdict_replaces_what_the_first_taught() -> None:
    first = labelled(0.0, example=example())
    state = folded(first, labelled(1.0, previous=0.0, example=example()))
    assert probability(folded(first)) < 0.5 < probability(state)


def test_the_same_verdict_again_adds_no_debt_and_no_evidence() -> None:
    once = folded(labelled(0.0, example=example()))
    again = folded(labelled(0.0, example=example()), labelled(0.0, previous=0.0, example=None))
    assert again.level("default").queue == pytest.approx(once.level("default").queue)
    assert (again.heads.weights == once.heads.weights).all()


def test_a_label_before_the_call_ended_moves_the_queue_at_once_and_trains_at_the_end() -> None:
    early = folded(labelled(0.0))
    assert early.level("default").queue == 0.6
    assert not learned(early)
    early.apply(settled(example=example(), satisfaction=0.0))
    assert early.level("default").queue == 0.6
    after = folded(settled(), labelled(0.0, example=example()))
    assert (early.heads.weights == after.heads.weights).all()
    assert learned(early)


def test_a_call_that_ends_without_a_label_trains_nothing() -> None:
    assert not learned(folded(settled(example=example(), satisfaction=None)))


def test_a_failed_call_with_an_early_label_trains_nothing() -> None:
    assert not learned(folded(settled(example=None, satisfaction=0.0)))


@pytest.mark.parametrize(
    "unusable",
    [example(encoder="another-1"), example("a model that was removed")],
    ids=["another encoder's features", "an unknown candidate"],
)
def test_what_cannot_be_learned_from_still_moves_the_queue(unusable: Example) -> None:
    for previous in (None, 1.0):
        state = folded(labelled(0.0, alpha=0.9, previous=previous, example=unusable))
        assert state.level("default").queue > 0.0
        assert not learned(state)
    assert not learned(folded(settled("gone", example=unusable, satisfaction=1.0)))


def test_a_call_that_ended_teaches_its_candidates_token_counts_alone() -> None:
    state = folded(settled(SMALL, prompt_characters=30, prompt_tokens=10, completion_tokens=7))
    small, large = state.estimators[SMALL], state.estimators[LARGE]
    assert (small.prompt_tokens(30), small.completion_tokens.value) == (10.0, 7.0)
    assert (large.prompt_tokens(40), large.completion_tokens.value) == (10.0, 100.0)


@pytest.mark.parametrize(
    "entry",
    [
        settled(None),
        settled("outside the zoo"),
        settled(prompt_tokens=None),
        settled(completion_tokens=None),
    ],
    ids=["nobody served", "unknown candidate", "no prompt tokens", "no completion tokens"],
)
def test_a_call_without_usage_of_ours_changes_nothing(state: ZooState, entry: Entry) -> None:
    before = bits(state)
    state.apply(entry)
    assert bits(state) == before


def test_folding_is_deterministic() -> None:
    entries: list[Entry] = [
        decided(),
        settled(SMALL, completion_tokens=31),
        labelled(0.25, example=example(SMALL, features=pair(0.1, 0.7))),
        labelled(0.75, previous=0.25, example=example(SMALL, features=pair(0.1, 0.7))),
    ]
    assert bits(folded(*entries)) == bits(folded(*deepcopy(entries)))
