"""What each entry of the log changes in the state of a zoo, and what it must not."""

from copy import deepcopy
from functools import partial
from typing import Protocol

import pytest

from litellm_messplus.prediction.prompt_heads import LengthHeads
from litellm_messplus.state import snapshot, zoo_state
from litellm_messplus.state.entries import Entry, Example
from litellm_messplus.state.zoo_state import ZooState
from tests.support.builders import (
    LARGE,
    POLICIES,
    SMALL,
    build_state,
    build_zoo,
    decided,
    example,
    labelled,
    pair,
    point,
    settled,
)


class Fold(Protocol):
    def __call__(self, *entries: Entry) -> ZooState: ...


def fold(policy: str, *entries: Entry) -> ZooState:
    state = build_state(build_zoo(policy=policy))
    for entry in entries:
        state.apply(entry)
    return state


@pytest.fixture(params=POLICIES)
def folded(request: pytest.FixtureRequest) -> Fold:
    """Folds entries into an empty state, under each policy in turn."""
    return partial(fold, request.param)


def bits(state: ZooState) -> bytes:
    return snapshot.dump(state)


def taught(state: ZooState) -> dict[str, bytes]:
    """What labels have taught the predictor, bit for bit."""
    return {name: array.tobytes() for name, array in state.policy.arrays().items()}


def learned(state: ZooState, folded: Fold) -> bool:
    return taught(state) != taught(folded())


def probability(state: ZooState, candidate: str = LARGE) -> float:
    (predicted,) = state.policy.predict(point(1.0, 0.0), [candidate])
    return predicted


def test_a_new_level_starts_without_debt_and_without_requests(folded: Fold) -> None:
    state = folded()
    assert (state.policy.queue("default"), state.requests["default"]) == (0.0, 0)


def test_a_decision_counts_in_its_level_alone(folded: Fold) -> None:
    state = folded(decided("gold"), decided("gold", "r2"), decided("default", "r3"))
    assert (state.requests["gold"], state.requests["default"]) == (2, 1)


def test_a_served_label_moves_the_queue_of_its_level_alone(folded: Fold) -> None:
    state = folded(labelled(0.0, service_level="gold", alpha=0.75))
    assert state.policy.queue("gold") == 0.75
    assert state.policy.queue("default") == 0.0


def test_the_alpha_that_counts_is_the_one_in_force_at_the_decision(folded: Fold) -> None:
    state = folded(labelled(0.0, alpha=0.75), labelled(0.0, alpha=0.5))
    assert state.policy.queue("default") == 1.25


def test_the_label_of_an_exploration_does_not_move_the_queue(folded: Fold) -> None:
    state = folded(labelled(0.0, is_served=False, example=example(SMALL)))
    assert state.policy.queue("default") == 0.0
    assert probability(state, SMALL) < probability(folded(), SMALL)


def test_the_served_label_of_an_exploration_moves_the_queue_and_trains(folded: Fold) -> None:
    state = folded(labelled(0.0, example=example(LARGE)))
    assert state.policy.queue("default") == 0.6
    assert probability(state) < probability(folded())


def test_under_paper_a_served_label_without_exploration_moves_the_queue_and_trains_nothing() -> (
    None
):
    """Algorithm 1: z(t+1) = z(t) unless the request explored."""
    paper = partial(fold, "paper")
    state = paper(labelled(0.0, example=example(LARGE, is_exploration=False)))
    assert state.policy.queue("default") == 0.6
    assert not learned(state, paper)


def test_under_adaptive_every_served_label_trains() -> None:
    """And trains what the same label on an exploration would."""
    adaptive = partial(fold, "adaptive")
    state = adaptive(labelled(0.0, example=example(LARGE, is_exploration=False)))
    assert state.policy.queue("default") == 0.6
    assert probability(state) < probability(adaptive())
    assert bits(state) == bits(adaptive(labelled(0.0, example=example(LARGE))))


@pytest.mark.parametrize(("first", "second"), [(1.0, 0.0), (0.0, 1.0), (0.25, 0.75)])
def test_a_second_verdict_counts_once(folded: Fold, first: float, second: float) -> None:
    debt = labelled(0.0, alpha=0.9), labelled(0.0, alpha=0.9)
    once = folded(*debt, labelled(second))
    twice = folded(*debt, labelled(first), labelled(second, previous=first))
    assert twice.policy.queue("default") == pytest.approx(once.policy.queue("default"))


def test_a_second_verdict_replaces_what_the_first_taught(folded: Fold) -> None:
    first = labelled(0.0, example=example())
    state = folded(first, labelled(1.0, previous=0.0, example=example()))
    assert probability(folded(first)) < probability(folded()) < probability(state)


def test_the_same_verdict_again_adds_no_debt_and_no_evidence(folded: Fold) -> None:
    once = folded(labelled(0.0, example=example()))
    again = folded(labelled(0.0, example=example()), labelled(0.0, previous=0.0, example=None))
    assert again.policy.queue("default") == pytest.approx(once.policy.queue("default"))
    assert taught(again) == taught(once)


def test_a_label_before_the_call_ended_moves_the_queue_at_once_and_trains_at_the_end(
    folded: Fold,
) -> None:
    early = folded(labelled(0.0))
    assert early.policy.queue("default") == 0.6
    assert not learned(early, folded)
    early.apply(settled(example=example(), satisfaction=0.0))
    assert early.policy.queue("default") == 0.6
    after = folded(settled(), labelled(0.0, example=example()))
    assert taught(early) == taught(after)
    assert learned(early, folded)


def test_a_call_that_ends_without_a_label_trains_nothing(folded: Fold) -> None:
    assert not learned(folded(settled(example=example(), satisfaction=None)), folded)


def test_a_failed_call_with_an_early_label_trains_nothing(folded: Fold) -> None:
    assert not learned(folded(settled(example=None, satisfaction=0.0)), folded)


@pytest.mark.parametrize(
    "unusable",
    [example(encoder="another-1"), example("a model that was removed")],
    ids=["another encoder's features", "an unknown candidate"],
)
def test_what_cannot_be_learned_from_still_moves_the_queue(folded: Fold, unusable: Example) -> None:
    for previous in (None, 1.0):
        state = folded(labelled(0.0, alpha=0.9, previous=previous, example=unusable))
        assert state.policy.queue("default") > 0.0
        assert not learned(state, folded)
    assert not learned(folded(settled("gone", example=unusable, satisfaction=1.0)), folded)


def test_a_call_that_ended_teaches_its_candidates_token_counts_alone(folded: Fold) -> None:
    state = folded(settled(SMALL, prompt_characters=30, prompt_tokens=10, completion_tokens=7))
    small, large = state.estimators[SMALL], state.estimators[LARGE]
    assert (small.tokens_of(30), small.completion_tokens.value) == (10.0, 7.0)
    assert (large.tokens_of(40), large.completion_tokens.value) == (10.0, 100.0)


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
def test_a_call_without_usage_of_ours_changes_nothing(folded: Fold, entry: Entry) -> None:
    assert bits(folded(entry)) == bits(folded())


def test_folding_is_deterministic(folded: Fold) -> None:
    entries: list[Entry] = [
        decided(),
        settled(SMALL, completion_tokens=31),
        labelled(0.25, example=example(SMALL, features=pair(0.1, 0.7))),
        labelled(0.75, previous=0.25, example=example(SMALL, features=pair(0.1, 0.7))),
    ]
    assert bits(folded(*entries)) == bits(folded(*deepcopy(entries)))


def test_lengths_are_learned_from_each_call_at_first_and_from_a_share_of_them_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(zoo_state, "CLOSELY", 10)
    seen: list[float] = []
    monkeypatch.setattr(LengthHeads, "learn", lambda *given: seen.append(given[-1]))
    calls = 10 + 4 * zoo_state.EVERY

    fold("adaptive", *(settled(position=place, example=example()) for place in range(calls)))

    assert len(seen) == 9 + 4  # not from the first, before which there is no mean
