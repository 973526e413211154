"""What each entry of the log changes in the state of a zoo, and what it must not."""

from functools import partial
from typing import Protocol

import pytest

from litellm_messplus.core import snapshot, zoo_state
from litellm_messplus.core.entries import Entry, Labelled
from litellm_messplus.core.paper_policy import PaperPolicy
from litellm_messplus.core.prompt_heads import LengthHeads
from litellm_messplus.core.zoo_state import ZooState
from tests.support.builders import (
    LARGE,
    POLICIES,
    SMALL,
    build_state,
    build_zoo,
    decided,
    example,
    labelled,
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


UNEXPLORED = example(LARGE, is_exploration=False)


@pytest.mark.parametrize(
    ("entries", "owed", "numbers"),
    [
        ([], {"default": 0.0}, {"default": 0}),
        (
            [decided("gold"), decided("gold", "r2"), decided("default", "r3")],
            *({}, {"gold": 2, "default": 1}),
        ),
        ([labelled(0.0, service_level="gold", alpha=0.75)], {"gold": 0.75, "default": 0.0}, {}),
        ([labelled(0.0, alpha=0.75), labelled(0.0, alpha=0.5)], {"default": 1.25}, {}),
        ([labelled(0.0, is_served=False, example=example(SMALL))], {"default": 0.0}, {}),
        ([labelled(0.0, example=example(LARGE))], {"default": 0.6}, {}),
        ([labelled(0.0, example=UNEXPLORED)], {"default": 0.6}, {}),
    ],
    ids=[
        *("nothing", "decisions count in their level", "labels move the queue of theirs"),
        *("by the alpha of their decision", "unseen ones move none", "an exploration's do"),
        "and any other request's",
    ],
)
def test_what_is_owed_and_numbered(
    folded: Fold, entries: list[Entry], owed: dict[str, float], numbers: dict[str, int]
) -> None:
    state = folded(*entries)
    assert {level: state.policy.queue(level) for level in owed} == owed
    assert {level: state.requests[level] for level in numbers} == numbers


def test_the_labels_of_explorations_train_and_under_adaptive_all_others_too(folded: Fold) -> None:
    """Algorithm 1: z(t+1) = z(t) unless the request explored."""
    for name, is_served in ((SMALL, False), (LARGE, True)):
        state = folded(labelled(0.0, is_served=is_served, example=example(name)))
        assert probability(state, name) < probability(folded(), name)
    plain, explored = (folded(labelled(0.0, example=each)) for each in (UNEXPLORED, example(LARGE)))
    if isinstance(plain.policy, PaperPolicy):
        assert not learned(plain, folded)
    else:
        assert bits(plain) == bits(explored)


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


def test_a_label_before_the_end_moves_the_queue_at_once(folded: Fold) -> None:
    early = folded(labelled(0.0))
    assert early.policy.queue("default") == 0.6
    assert not learned(early, folded)
    early.apply(settled(example=example(), satisfaction=0.0))
    assert early.policy.queue("default") == 0.6
    after = folded(settled(), labelled(0.0, example=example()))
    assert taught(early) == taught(after)
    assert learned(early, folded)


@pytest.mark.parametrize(
    "entry",
    [
        settled(example=example(), satisfaction=None),
        settled(example=None, satisfaction=0.0),
        settled("gone", example=example("a model that was removed"), satisfaction=1.0),
        *(
            labelled(0.0, alpha=0.9, previous=previous, example=unusable)
            for unusable in (example(encoder="another-1"), example("a model that was removed"))
            for previous in (None, 1.0)
        ),
    ],
    ids=[
        *("no label", "a failed call with an early one", "a call of an unknown candidate"),
        *("another encoder's features", "a second label of them"),
        *("a label of an unknown candidate", "a second one"),
    ],
)
def test_what_cannot_be_learned_from_still_moves_the_queue(folded: Fold, entry: Entry) -> None:
    state = folded(entry)
    assert not learned(state, folded)
    assert (state.policy.queue("default") > 0.0) == isinstance(entry, Labelled)


def test_a_call_that_ended_teaches_its_candidates_token_counts_alone(folded: Fold) -> None:
    state = folded(settled(SMALL, prompt_characters=30, prompt_tokens=10, completion_tokens=7))
    small, large = state.estimators[SMALL], state.estimators[LARGE]
    assert (30 / small.characters_per_token.value, small.completion_tokens.value) == (10.0, 7.0)
    assert (40 / large.characters_per_token.value, large.completion_tokens.value) == (10.0, 100.0)


@pytest.mark.parametrize(
    "entry",
    [
        settled(None),
        settled("outside the zoo"),
        settled(prompt_tokens=None),
        settled(completion_tokens=None),
    ],
    ids=["no one served", "unknown candidate", "no prompt tokens", "no completion tokens"],
)
def test_a_call_without_usage_of_ours_changes_nothing(folded: Fold, entry: Entry) -> None:
    assert bits(folded(entry)) == bits(folded())


def test_lengths_are_learned_from_each_then_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoo_state, "CLOSELY", 10)
    seen: list[float] = []
    monkeypatch.setattr(LengthHeads, "learn", lambda *given: seen.append(given[-1]))
    calls = 10 + 4 * zoo_state.EVERY

    fold("adaptive", *(settled(position=place, example=example()) for place in range(calls)))

    assert len(seen) == 9 + 4  # not from the first, before which there is no mean
