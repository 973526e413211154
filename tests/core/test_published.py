"""A published state decides as the state that it was made from, to the bit."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings

from litellm_messplus.core import snapshot
from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.engine import Engine, Question
from litellm_messplus.core.entries import Entry
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.published import Publication, View, view_of
from litellm_messplus.core.surface import read_surface
from litellm_messplus.runtime.vocabulary import Change
from tests.core.test_snapshot import entries
from tests.support.builders import (
    LARGE,
    MEDIUM,
    POLICIES,
    SMALL,
    build_engine,
    build_zoo,
    changed,
    decided,
    example,
    labelled,
    pair,
    settled,
)

QUESTIONS = ("2 + 2", "a longer question with 17 numbers 3, 4, 5?", "x = 1\ny = 2\n" * 20)


def folded(policy: str, log: list[Entry]) -> Engine:
    engine = build_engine(build_zoo(policy=policy))
    for position, entry in enumerate(log, start=1):
        engine.apply(replace(entry, position=position))
    return engine


def published(engine: Engine) -> bytes:
    view = View("settings", *view_of(engine.state))
    return Publication(7, 2, 3, {"worker": 5}, {"zoo": view}).pack()


def decisions(engine: Engine) -> list[object]:
    """The situation and the choice for each question, from this state alone."""
    found: list[object] = []
    for number, text in enumerate(QUESTIONS):
        prompt = Prompt(pair(0.5, -0.25 * number), read_surface(Conversation.of_text(text)))
        candidates = tuple(engine.zoo.present)
        question = Question(f"q{number}", engine.zoo.levels["default"], prompt, 40, candidates)
        choice = engine.decide(question)
        engine.forget(question.request_id)
        found.append((choice.decision, replace(choice.situation, outlook=None)))
    return found


@pytest.mark.parametrize("policy", POLICIES)
@given(log=entries)
@settings(max_examples=60, deadline=None)
def test_it_decides_as_the_state_that_it_is_of(policy: str, log: list[Entry]) -> None:
    learner = folded(policy, log)
    assume(learner.zoo.present)  # with nobody there, nothing is decided
    decider = build_engine(build_zoo(policy=policy))
    found = Publication.unpack(published(learner))

    decider.see(found.views["zoo"], 1)

    assert (found.position, found.epoch, found.workers) == (7, 2, 3)
    assert decisions(decider) == decisions(learner)


def judged(count: int) -> list[Entry]:
    log: list[Entry] = []
    for number in range(count):
        name, request_id = (SMALL, MEDIUM, LARGE)[number % 3], f"r{number}"
        seen = example(
            name,
            request_id=request_id,
            features=pair(number % 5 - 2.0, 0.3),
            surface=read_surface(Conversation.of_text(f"what is {number} + {number % 7}?")),
        )
        share = float(number % 3 > 0 or number % 2)
        log.append(decided(request_id=request_id, expected_shortfall=0.1))
        log.append(settled(name, call_id=f"{request_id}.0", example=seen, seconds=0.2))
        log.append(labelled(share, request_id=request_id, call_id=f"{request_id}.0", example=seen))
    return log


def test_after_many_labels_too_with_an_outlook_on_recent_prompts() -> None:
    learner = folded("adaptive", judged(300))
    decider = build_engine()

    decider.see(Publication.unpack(published(learner)).views["zoo"], 1)

    assert decisions(decider) == decisions(learner)
    assert decider.situation(question_of(decider)).outlook is not None


def question_of(engine: Engine) -> Question:
    level = engine.zoo.levels["default"]
    return Question("q", level, Prompt(pair(1.0, 0.0)), 40, tuple(engine.zoo.present))


def test_it_is_loaded_over_another_one_whatever_became_of_the_candidates() -> None:
    """A candidate that was forgotten and came back is the last, in the arrays too."""
    decider = folded("adaptive", [changed("new")])
    learner = folded("adaptive", [*judged(60), changed("other"), changed("new", price=0.001)])

    decider.see(Publication.unpack(published(learner)).views["zoo"], 1)

    assert decider.state.candidates == learner.state.candidates
    assert decisions(decider) == decisions(learner)
    back = folded("adaptive", [changed("new", Change.GONE)])
    decider.see(Publication.unpack(published(back)).views["zoo"], 1)
    assert decider.state.candidates == back.state.candidates


def test_it_leaves_out_what_only_learning_needs() -> None:
    learner = folded("adaptive", judged(300))

    assert 10 * len(published(learner)) < len(snapshot.dump(learner.state))


def test_other_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="not a published state"):
        Publication.unpack(b"something else")
