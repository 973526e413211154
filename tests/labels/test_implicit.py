"""What users do next says whether the answer satisfied, as far as it can be told."""

import pytest

from litellm_messplus.labels import implicit as module
from litellm_messplus.labels.implicit import Implicit
from litellm_messplus.labels.source import AnsweredCall, Finding
from litellm_messplus.prediction.encoder import Conversation, Turn
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.settings.labels import ImplicitSettings
from tests.labels.builders import answered, conversation

QUESTION, AGAIN, ANSWER = "What is the capital of France?", "what is the capital of france", "Lyon."


def findings(*calls: AnsweredCall, **settings: float) -> list[Finding]:
    found: list[Finding] = []
    source = Implicit(ImplicitSettings(**settings), found.append)
    for call in calls:
        source.ended(call)
    return found


def verdicts(*calls: AnsweredCall, **settings: float) -> list[tuple[str, float]]:
    return [(found.call_id, found.value) for found in findings(*calls, **settings)]


def test_the_same_question_after_the_answer_says_that_it_did_not_satisfy() -> None:
    (found,) = findings(answered(QUESTION), answered(QUESTION, ANSWER, AGAIN, seconds=20))

    assert (found.call_id, found.request_id, found.value) == ("r0.0", "r0", 0.0)
    assert (found.kind, found.source) == (LabelKind.IMPLICIT, "implicit")


def test_a_label_of_it_is_weak() -> None:
    calls = answered(QUESTION), answered(QUESTION, ANSWER, AGAIN, seconds=20)

    assert [found.weight for found in findings(*calls)] == [0.3]


def test_going_on_says_that_the_answer_satisfied() -> None:
    assert verdicts(
        answered(QUESTION), answered(QUESTION, ANSWER, "And of Spain?", seconds=20)
    ) == [("r0.0", 1.0)]


def test_an_answer_drawn_anew_did_not_satisfy() -> None:
    """The same messages once more, with an earlier answer among them or from a known user."""
    turns = QUESTION, ANSWER, "And of Spain?"
    assert verdicts(answered(*turns), answered(*turns, seconds=5)) == [("r0.0", 0.0)]
    assert verdicts(answered(QUESTION, user="ann"), answered(QUESTION, seconds=5, user="ann")) == [
        ("r0.0", 0.0)
    ]


def test_a_question_asked_again_in_other_words_by_a_known_user_did_not_satisfy() -> None:
    calls = answered(QUESTION, user="ann"), answered(AGAIN, seconds=5, user="ann")
    assert verdicts(*calls) == [("r0.0", 0.0)]


def test_many_may_ask_the_same_first_question() -> None:
    """Nobody says who asks, and nothing shows that it is one conversation."""
    assert verdicts(answered(QUESTION), answered(QUESTION, seconds=5)) == []
    ann, bob = answered(QUESTION, user="ann"), answered(QUESTION, seconds=5, user="bob")
    assert verdicts(ann, bob) == []
    other_key = answered(QUESTION, ANSWER, AGAIN, seconds=5, key_hash="another")
    assert verdicts(answered(QUESTION), other_key) == []


def test_a_known_user_who_begins_something_else_says_nothing() -> None:
    calls = answered(QUESTION, user="ann"), answered("Draw me a sheep", seconds=5, user="ann")
    assert verdicts(*calls) == []


def test_only_what_comes_soon_speaks_of_the_answer() -> None:
    later = answered(QUESTION, ANSWER, AGAIN, seconds=182)
    assert verdicts(answered(QUESTION), later) == []
    assert verdicts(answered(QUESTION), later, within_seconds=200) == [("r0.0", 0.0)]


def test_what_was_asked_before_the_answer_came_is_no_reaction_to_it() -> None:
    turns = QUESTION, ANSWER, "And of Spain?"
    assert verdicts(answered(*turns), answered(*turns, seconds=0.5)) == []


def test_each_answer_is_judged_by_the_question_after_it() -> None:
    again = QUESTION, ANSWER, AGAIN
    calls = [
        answered(QUESTION),
        answered(*again, seconds=10),
        answered(*again, "Paris.", "Thanks! And of Spain?", seconds=20),
    ]
    assert verdicts(*calls) == [("r0.0", 0.0), ("r10.0", 1.0)]


def test_the_systems_words_may_change_between_two_turns() -> None:
    first = answered(conversation=conversation(QUESTION, system="It is 12:00:00."))
    then = answered(conversation=conversation(QUESTION, ANSWER, AGAIN, system="It is 12:00:20."),
                    seconds=20)  # fmt: skip
    assert verdicts(first, then) == [("r0.0", 0.0)]


def test_a_tools_result_is_no_users_reaction() -> None:
    turns = (Turn("user", QUESTION), Turn("assistant", "search(France)"), Turn("tool", "Paris"))
    assert verdicts(answered(QUESTION), answered(conversation=Conversation(turns), seconds=5)) == []


def test_an_error_says_nothing_and_neither_does_asking_again_after_it() -> None:
    failed = answered(QUESTION, answer=None, user="ann")
    assert verdicts(failed, answered(QUESTION, seconds=5, user="ann")) == []


def test_explorations_are_nobodys_answers() -> None:
    unseen = answered(QUESTION, is_served=False, call_id="r0.1", user="ann")
    assert verdicts(unseen, answered(QUESTION, seconds=5, user="ann")) == []


@pytest.mark.parametrize("nothing", [Conversation(()), conversation("", system="only the system")])
def test_a_request_without_words_says_nothing(nothing: Conversation) -> None:
    assert verdicts(answered(conversation=nothing), answered(conversation=nothing, seconds=5)) == []


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 2)
    users = [answered(QUESTION, user=name) for name in ("ann", "bob", "cid")]
    again = [answered(AGAIN, seconds=5, user=name, request_id="again") for name in ("ann", "cid")]
    assert len(findings(*users, *again)) == 1  # ann's is forgotten
