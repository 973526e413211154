"""Which requests belong together, told from their prompts alone."""

from collections import Counter
from dataclasses import dataclass
from functools import partial

import pytest

from litellm_messplus.conversations.line import Asked, Joined, Place, Warm
from litellm_messplus.conversations.lines import Lines
from litellm_messplus.prediction.encoder import Conversation, Turn
from tests.conversations.sessions import Request, interleaved

KEY = b"a secret of the tests"


@dataclass
class Desk:
    """Asks for one zoo, with names for the requests in their order."""

    lines: Lines
    now: float = 0.0
    asked: int = 0

    def ask(
        self,
        *words: str,
        zoo: str = "zoo",
        key: str = "alice",
        ids: tuple[str, ...] = (),
        session: str | None = None,
    ) -> Place:
        """The words of a user and of the assistant by turns, after the system's."""
        roles = ("user", "assistant")
        turns = tuple(Turn(roles[i % 2], text) for i, text in enumerate(words))
        self.asked += 1
        conversation = Conversation((Turn("system", "S"), *turns))
        given = Asked(str(self.asked), zoo, key, conversation, lambda: ids, session)
        return self.lines.find(given, self.now)


@pytest.fixture
def desk() -> Desk:
    return Desk(Lines(KEY))


def test_a_prompt_that_goes_on_from_another_is_the_same_line(desk: Desk) -> None:
    first = desk.ask("q1")
    second = desk.ask("q1", "a1", "q2")
    third = desk.ask("q1", "a1", "q2", "a2", "q3")
    assert first.joined is Joined.NEW
    assert second.joined is third.joined is Joined.PREFIX
    assert first.line is second.line is third.line
    assert (first.line.name, first.line.conversation) == ("1", "1")
    assert [place.turn for place in (first, second, third)] == [1, 2, 3]
    assert (third.prefix, third.characters) == (len("Sq1a1q2"), len("Sq1a1q2a2q3"))
    assert third.parent is None


def test_an_answer_of_several_turns_hides_nothing(desk: Desk) -> None:
    """Of the responses API: what was thought, and each call, is an item of its own."""
    desk.ask("q1")
    turns = [("user", "q1"), ("assistant", "thinks"), ("assistant", "calls"), ("tool", "result")]
    conversation = Conversation((Turn("system", "S"), *(Turn(*turn) for turn in turns)))
    place = desk.lines.find(Asked("2", "zoo", "alice", conversation), 0.0)
    assert place.joined is Joined.PREFIX


def test_a_changed_question_is_another_line_of_the_conversation(desk: Desk) -> None:
    root = desk.ask("q1")
    desk.ask("q1", "a1", "q2")
    edited = desk.ask("q1", "a1", "instead")
    assert edited.line is not root.line
    assert edited.parent is root.line
    assert edited.line.conversation == root.line.conversation
    assert edited.prefix == len("Sq1")
    assert not edited.is_again


def test_the_same_question_again_is_another_line_of_the_conversation(desk: Desk) -> None:
    desk.ask("q1")
    asked = desk.ask("q1", "a1", "q2")
    again = desk.ask("q1", "a1", "q2")
    after = desk.ask("q1", "a1", "q2", "another a2", "q3")
    assert again.is_again
    assert again.parent is asked.line
    assert again.prefix == again.characters
    assert after.line is again.line


def test_many_ask_the_same_first_question(desk: Desk) -> None:
    one, other = desk.ask("q1"), desk.ask("q1")
    assert other.joined is Joined.NEW
    assert one.line.conversation != other.line.conversation


def test_where_nothing_tells_which_of_two_goes_on_neither_does(desk: Desk) -> None:
    desk.ask("q1")
    desk.ask("q1")
    assert desk.ask("q1", "a1", "q2").joined is Joined.NEW


def test_the_answer_tells_which_of_two_goes_on(desk: Desk) -> None:
    one, other = desk.ask("q1"), desk.ask("q1")
    desk.lines.ended(one, "d", answer="one answer\n")
    desk.lines.ended(other, "d", answer="another")
    assert desk.ask("q1", "one answer", "q2").line is one.line
    assert desk.ask("q1", "another", "q2").line is other.line


def test_of_two_with_the_same_answers_the_one_that_stands_there_goes_on(desk: Desk) -> None:
    """As in a benchmark that asks its questions several times."""
    runs = []
    for _ in range(3):
        first = desk.ask("q1")
        desk.lines.ended(first, "d", answer="a1")
        second = desk.ask("q1", "a1", "q2")
        desk.lines.ended(second, "d", answer="a2")
        third = desk.ask("q1", "a1", "q2", "a2", "q3")
        assert first.line is second.line is third.line
        runs.append(third.line.conversation)
    assert len(set(runs)) == 3


def test_the_id_of_a_call_tells_which_of_two_goes_on(desk: Desk) -> None:
    one, other = desk.ask("q1"), desk.ask("q1")
    desk.lines.ended(one, "d", ids=["call_1"])
    desk.lines.ended(other, "d", ids=["call_2"])
    assert desk.ask("q1", "bash(ls)", "q2", ids=("call_2",)).line is other.line
    assert desk.ask("q1", "bash(ls)", "q2", ids=("call_1",)).line is one.line


def test_the_session_tells_which_of_two_goes_on(desk: Desk) -> None:
    one, other = desk.ask("q1", session="s1"), desk.ask("q1", session="s2")
    assert desk.ask("q1", "a", "q2", session="s1").line is one.line
    assert desk.ask("q1", "a", "q2", session="s2").line is other.line


def test_a_compacted_prompt_is_known_by_the_ids_that_it_keeps_and_nothing_is_warm(
    desk: Desk,
) -> None:
    root = desk.ask("q1")
    desk.lines.ended(root, "d", ids=["call_1"], warm=Warm(1000.0, 3, 0.0))
    compacted = desk.ask("a summary", ids=("call_1",))
    assert compacted.joined is Joined.ID
    assert compacted.parent is root.line
    assert compacted.line is not root.line
    assert compacted.line.conversation == root.line.conversation
    assert (compacted.prefix, compacted.line.warm) == (0, {})


def test_ids_are_read_only_where_the_words_do_not_tell(desk: Desk) -> None:
    """Reading them takes as long as all the rest, and every request would wait for it."""

    def unread() -> tuple[str, ...]:
        raise AssertionError("the ids were read")

    desk.ask("q1")
    turns = (Turn("system", "S"), Turn("user", "q1"), Turn("assistant", "a1"), Turn("tool", "t1"))
    asked = Asked("next", "zoo", "alice", Conversation(turns), unread)
    assert desk.lines.find(asked, desk.now).turn == 2


def test_an_id_that_several_conversations_got_tells_nothing(desk: Desk) -> None:
    """Some models number their calls from 0."""
    for question in ("q1", "q2"):
        desk.lines.ended(desk.ask(question), "d", ids=["bash:0"])
    assert desk.ask("a summary", ids=("bash:0",)).joined is Joined.NEW


def test_the_session_joins_sub_agents_as_lines_of_their_own(desk: Desk) -> None:
    root = desk.ask("q1", session="s")
    sub = desk.ask("search", session="s")
    assert sub.joined is Joined.SESSION
    assert sub.line is not root.line
    assert sub.line.conversation == root.line.conversation


def test_an_id_of_a_session_that_is_new_for_each_request_does_no_harm(desk: Desk) -> None:
    root = desk.ask("q1", session="trace 1")
    assert desk.ask("q1", "a1", "q2", session="trace 2").line is root.line


@pytest.mark.parametrize("other", [{"zoo": "another"}, {"key": "bob"}], ids=str)
def test_nothing_is_joined_across_zoos_and_keys(desk: Desk, other: dict[str, str]) -> None:
    root = desk.ask("q1", session="s")
    desk.lines.ended(root, "d", ids=["call_1"])
    zoo, key = other.get("zoo", "zoo"), other.get("key", "alice")
    place = desk.ask("q1", "a1", "q2", zoo=zoo, key=key, session="s", ids=("call_1",))
    assert place.joined is Joined.NEW


def test_a_branch_has_warm_what_it_shares_and_knows_who_was_called(desk: Desk) -> None:
    root = desk.ask("q1")
    desk.lines.called(root.line, "large", "replica 1")
    grown = desk.ask("q1", "a1", "q2")
    desk.lines.ended(grown, "replica 1", warm=Warm(700.0, len("Sq1a1q2"), 5.0))
    branch = desk.ask("q1", "a1", "instead")
    assert branch.line.warm == {"replica 1": Warm(300.0, len("Sq1"), 5.0)}
    assert (branch.line.candidate, branch.line.deployment) == ("large", "replica 1")
    assert root.line.warm == {"replica 1": Warm(700.0, len("Sq1a1q2"), 5.0)}


def test_two_unused_hours_are_forgotten(desk: Desk) -> None:
    desk.ask("q1")
    desk.now = 7_200.0
    assert desk.ask("q1", "a1", "q2").joined is Joined.PREFIX
    desk.now += 7_201.0
    assert desk.ask("q1", "a1", "q2", "a2", "q3").joined is Joined.NEW


def test_what_ended_of_a_line_that_is_forgotten_is_nothing() -> None:
    desk = Desk(Lines(KEY, lines=1))
    place = desk.ask("q1")
    desk.ask("q2")
    desk.lines.ended(place, "d", answer="a1", ids=["call_1"], warm=Warm(1.0, 1, 0.0))
    assert desk.ask("q1", "a1", "q3", ids=("call_1",)).joined is Joined.NEW


def test_with_another_key_the_digests_are_others() -> None:
    """Nobody who reads them can guess a prompt without it."""
    one, other = Desk(Lines(b"one")).ask("q1"), Desk(Lines(b"other")).ask("q1")
    assert one.prompt != other.prompt
    assert len(one.prompt) == 16


def test_a_prompt_of_any_text_has_a_place(desk: Desk) -> None:
    assert desk.ask("half a surrogate \ud83d", "", "\0").line is not None
    empty = desk.lines.find(Asked("0", "zoo", "alice", Conversation(())), 0.0)
    assert empty.characters == 0


def test_no_two_sequences_of_turns_read_alike(desk: Desk) -> None:
    prompts = {
        desk.ask("ab", "c", "d").prompt,
        desk.ask("a", "bc", "d").prompt,
        desk.ask("abc", "", "d").prompt,
        desk.ask("abc", "d").prompt,
    }
    assert len(prompts) == 4


# Generated sessions: how many turns are joined without any id, and whether one is joined falsely.


@dataclass
class Tally:
    """``turns`` are those whose words hold an earlier request, ``joined`` those of them that were
    given its conversation; ``apart`` are the others, openings and compactions, and ``rejoined``
    those of them that were joined all the same. ``false`` were given another's."""

    turns: int = 0
    joined: int = 0
    false: int = 0
    apart: int = 0
    rejoined: int = 0

    def add(self, request: Request, place: Place, sessions_of: dict[str, int]) -> None:
        session = sessions_of.setdefault(place.line.conversation, request.session)
        self.false += session != request.session
        is_joined = place.joined is not Joined.NEW
        if request.is_first:
            self.apart += 1
            self.rejoined += is_joined
        else:
            self.turns += 1
            self.joined += is_joined


def tally(seed: int, *, with_answers: bool, with_ids: bool, late: int = 0) -> Tally:
    """Of 300 sessions, 40 at a time. What a request ended with is told ``late`` requests later."""
    lines, found = Lines(KEY), Tally()
    sessions_of: dict[str, int] = {}
    ended: list[tuple[Place, Request]] = []
    for number, request in enumerate(interleaved(300, seed)):
        ids = request.ids if with_ids else ()
        asked = Asked(str(number), "zoo", request.key, request.conversation, partial(tuple, ids))
        place = lines.find(asked, float(number))
        found.add(request, place, sessions_of)
        ended.append((place, request))
        if len(ended) > late:
            place, request = ended.pop(0)
            answer = request.answer.text if with_answers else ""
            lines.ended(place, "d", answer=answer, ids=request.gives if with_ids else ())
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("late", [0, 3])
def test_without_ids_nearly_all_turns_are_joined_and_none_falsely(seed: int, late: int) -> None:
    found = tally(seed, with_answers=True, with_ids=False, late=late)
    assert found.turns > 5_000
    assert found.joined / found.turns >= 0.99
    assert found.false == 0


def test_with_the_ids_of_tool_calls_compactions_are_joined_too() -> None:
    without = tally(7, with_answers=True, with_ids=False)
    found = tally(7, with_answers=True, with_ids=True)
    assert found.joined / found.turns >= 0.99
    assert found.rejoined > without.rejoined == 0
    assert found.false == 0


def test_where_nothing_is_told_of_answers_none_is_joined_falsely_either() -> None:
    found = tally(1, with_answers=False, with_ids=False)
    assert found.joined / found.turns >= 0.95
    assert found.false == 0


# Memory.


def test_a_million_lines_take_bounded_memory_and_the_oldest_are_forgotten() -> None:
    lines = Lines(KEY, lines=1_000, points=4_000)
    for number in range(1_000_000):
        turns = (Turn("user", f"question {number}"),)
        place = lines.find(Asked(str(number), "zoo", "key", Conversation(turns)), number * 1e-3)
        if number % 97 == 0:
            lines.ended(place, "d", answer="an answer", ids=[f"call {number}"])
    assert len(lines) == 1_000
    assert lines.points <= 2 * 4_000 + 1_000

    def goes_on(number: int) -> Joined:
        turns = (Turn("user", f"question {number}"), Turn("assistant", "a"), Turn("user", "q"))
        return lines.find(Asked(f"{number}+", "zoo", "key", Conversation(turns)), 1e3).joined

    assert goes_on(999_999) is goes_on(999_500) is Joined.PREFIX
    assert goes_on(998_000) is goes_on(0) is Joined.NEW


def test_a_prompt_that_everybody_asks_has_few_owners(desk: Desk) -> None:
    places = [desk.ask("q1") for _ in range(20)]
    for number, place in enumerate(places):
        desk.lines.ended(place, "d", answer=f"answer {number}")
    joined = Counter(desk.ask("q1", f"answer {number}", "q2").joined for number in range(20))
    assert joined == {Joined.PREFIX: 8, Joined.NEW: 12}


def test_a_session_is_in_the_log_by_a_digest_that_needs_the_key() -> None:
    lines = Lines(b"one")

    assert lines.session_digest("mine") == Lines(b"one").session_digest("mine")
    others = {lines.session_digest("other"), Lines(b"two").session_digest("mine")}
    assert len(others | {lines.session_digest("mine")}) == 3
    assert len(lines.session_digest("\ud800")) == 32
