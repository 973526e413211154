"""Which requests belong together, told from their prompts alone, in bounded memory."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.core.encoder import Conversation, Turn
from litellm_messplus.core.line import LineRequest, LoggedTurn, Place, Warm
from litellm_messplus.core.lines import WARM, Lines
from litellm_messplus.store.answered import read_conversation_key
from litellm_messplus.store.database import create_engine, migrate
from tests.core.sessions import Request, interleaved
from tests.support.builders import SMALL

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
        system: str = "S",
    ) -> Place:
        """The words of a user and of the assistant by turns, after the system's."""
        roles = ("user", "assistant")
        turns = tuple(Turn(roles[i % 2], text) for i, text in enumerate(words))
        self.asked += 1
        conversation = Conversation((Turn("system", system), *turns))
        given = LineRequest(str(self.asked), zoo, key, conversation, ids, session)
        return self.lines.find(given, self.now)


def is_new(place: Place) -> bool:
    """Whether it begins a conversation."""
    return place.line.conversation == place.line.name and place.turn == 1


@pytest.fixture
def desk() -> Desk:
    return Desk(Lines(KEY))


def test_a_prompt_that_goes_on_from_another_is_the_same_line(desk: Desk) -> None:
    first = desk.ask("q1")
    second = desk.ask("q1", "a1", "q2")
    third = desk.ask("q1", "a1", "q2", "a2", "q3")
    assert first.line is second.line is third.line
    assert (first.line.name, first.line.conversation) == ("1", "1")
    assert [place.turn for place in (first, second, third)] == [1, 2, 3]
    assert third.characters == len("Sq1a1q2a2q3")
    assert third.parent is None


def test_an_answer_of_several_turns_hides_nothing(desk: Desk) -> None:
    """Of the responses API: what was thought, and each call, is an item of its own."""
    desk.ask("q1")
    turns = [("user", "q1"), ("assistant", "thinks"), ("assistant", "calls"), ("tool", "result")]
    conversation = Conversation((Turn("system", "S"), *(Turn(*turn) for turn in turns)))
    place = desk.lines.find(LineRequest("2", "zoo", "alice", conversation), 0.0)
    assert place.turn == 2


@pytest.mark.parametrize(("asked", "is_again"), [("instead", False), ("q2", True)])
def test_a_changed_or_repeated_question_is_a_line(desk: Desk, asked: str, is_again: bool) -> None:
    root = desk.ask("q1")
    desk.ask("q1", "a1", "q2")
    other = desk.ask("q1", "a1", asked)
    after = desk.ask("q1", "a1", asked, "another a2", "q3")
    assert other.line is not root.line
    assert other.parent is root.line
    assert other.line.conversation == root.line.conversation
    assert other.is_again == is_again
    assert after.line is other.line


NOTHING: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("first", "end", "following", "is_joined"),
    [
        ([NOTHING, NOTHING], [NOTHING, NOTHING], ["a1", "a1"], False),
        (
            [NOTHING, NOTHING],
            [{"answer": "one answer\n"}, {"answer": "another"}],
            *(["one answer", "another"], True),
        ),
        ([NOTHING, NOTHING], [{"answer": "a1"}, {"answer": "a1"}], ["a1", "a1"], False),
        ([NOTHING, NOTHING], [{"ids": ["call_1"]}, {"ids": ["call_2"]}], ["a1", "a1"], True),
        ([{"session": "s1"}, {"session": "s2"}], [NOTHING, NOTHING], ["a1", "a1"], True),
    ],
    ids=["nothing", "the answer", "the same answer", "the id of a call", "the session"],
)
def test_of_two_that_ask_the_same_first_question_what_tells_which_goes_on(
    desk: Desk,
    first: list[dict[str, Any]],
    end: list[dict[str, Any]],
    following: list[str],
    is_joined: bool,
) -> None:
    places = [desk.ask("q1", **each) for each in first]
    assert all(map(is_new, places))
    for place, each in zip(places, end, strict=True):
        desk.lines.ended(place, "d", **each)
    for number in (1, 0):
        ids = tuple(end[number].get("ids", ()))
        found = desk.ask("q1", following[number], "q2", ids=ids, **first[number])
        assert (found.line is places[number].line) == is_joined
        assert is_new(found) != is_joined


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


GONE_ON = ("q1", "a1", "q2")
SAME = {"session": "s", "ids": ("call_1",)}


@pytest.mark.parametrize(
    ("words", "given", "is_known", "is_line"),
    [
        (GONE_ON, {"session": "a trace of its own"}, True, True),
        (("a summary",), {"ids": ("call_1",)}, True, True),
        (("search",), {"session": "s"}, True, False),
        (("a summary",), {"ids": ("bash:0",)}, False, False),
        (GONE_ON, {**SAME, "zoo": "another"}, False, False),
        (GONE_ON, {**SAME, "key": "bob"}, False, False),
    ],
    ids=[
        *("it goes on", "a compacted prompt that keeps an id", "a sub-agent of the session"),
        *("an id that several got", "another zoo", "another key"),
    ],
)
def test_what_tells_that_a_prompt_belongs_to_a_conversation(
    desk: Desk, words: tuple[str, ...], given: dict[str, Any], is_known: bool, is_line: bool
) -> None:
    root = desk.ask("q1", session="s")
    desk.lines.ended(root, "d", ids=["call_1", "bash:0"], warm=Warm(1000.0, 3, 0.0))
    desk.lines.ended(desk.ask("another"), "d", ids=["bash:0"])  # some models number from 0
    place = desk.ask(*words, **given)
    assert is_new(place) != is_known
    assert (place.line is root.line) == is_line
    assert (place.line.conversation == root.line.conversation) == is_known
    if not is_line:
        assert (place.line.warm, place.parent) == ({}, None)


def test_another_system_prompt_in_every_request_is_the_same_line(desk: Desk) -> None:
    """A date, a client's header, what was looked up: the cache is as warm as it turns out to be."""
    words = ["q1"]
    places = []
    for number in range(5):
        places.append(desk.ask(*words, system=f"At {number}: " + "S" * number))
        warm = Warm(900.0, 10, 0.0)
        desk.lines.ended(places[-1], "d", answer=f"a{number}", warm=warm)
        words += [f"a{number}", f"then {number}"]
    assert [place.turn for place in places] == [1, 2, 3, 4, 5]
    assert {place.line.name for place in places} == {"1"}
    assert places[-1].line.warm == {"d": warm}


@pytest.mark.parametrize(
    "words", [("q1", "another answer", "q2"), ("q1", "a1", "q2", "a2", "q3"), ("q1",)]
)
def test_another_system_prompt_joins_none_falsely(desk: Desk, words: tuple[str, ...]) -> None:
    desk.lines.ended(desk.ask("q1"), "d", answer="a1")
    assert is_new(desk.ask(*words, system="Another"))


def test_of_two_under_other_systems_the_same_system_tells(desk: Desk) -> None:
    """As of documents in the system prompt, each summed up at the same first words."""
    places = [desk.ask("q1", system=f"Document {number}") for number in range(20)]
    for number, place in enumerate(places):
        assert desk.ask("q1", "a1", "q2", system=f"Document {number}").line is place.line
    assert is_new(desk.ask("q1", "a1", "q2", "a2", "q3", system="Document 99"))


def test_cleared_results_leave_the_line_and_the_cache_before_them(desk: Desk) -> None:
    desk.ask("q1")
    place = desk.ask("q1", "a1", "a long result")
    warm = Warm(700.0, len("Sq1a1a long result"), 5.0)
    desk.lines.ended(place, "d", ids=["call_2"], warm=warm)
    edited = desk.ask("q1", "a1", "[cleared]", "a2", "result", ids=("call_1", "call_2"))
    assert (edited.line, edited.turn) == (place.line, 3)
    assert edited.line.warm["d"].tokens == pytest.approx(700.0 * 3 / warm.characters)
    again = desk.ask("q1", "a1", "[cleared]", "b2", "result", ids=("call_1", "call_2"))
    assert again.line is not place.line, "the answer to the newest prompt gave no such id"


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
    assert not is_new(desk.ask("q1", "a1", "q2"))
    desk.now += 7_201.0
    assert is_new(desk.ask("q1", "a1", "q2", "a2", "q3"))
    only_one = Desk(Lines(KEY, lines=1))
    place = only_one.ask("q1")
    only_one.ask("q2")  # what ended of a line that is forgotten is nothing
    only_one.lines.ended(place, "d", answer="a1", ids=["call_1"], warm=Warm(1.0, 1, 0.0))
    assert is_new(only_one.ask("q1", "a1", "q3", ids=("call_1",)))


def test_a_prompt_of_any_text_has_a_place(desk: Desk) -> None:
    assert desk.ask("half a surrogate \ud83d", "", "\0").line is not None
    empty = desk.lines.find(LineRequest("0", "zoo", "alice", Conversation(())), 0.0)
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
        is_joined = not is_new(place)
        if request.is_first:
            self.apart += 1
            self.rejoined += is_joined
        else:
            self.turns += 1
            self.joined += is_joined


def tally(
    seed: int, *, with_answers: bool, with_ids: bool, late: int = 0, dated: bool = False
) -> Tally:
    """Of 300 sessions, 40 at a time. What a request ended with is told ``late`` requests later. The
    system prompt of each is another one if it is ``dated``."""
    lines, found = Lines(KEY), Tally()
    sessions_of: dict[str, int] = {}
    ended: list[tuple[Place, Request]] = []
    for number, request in enumerate(interleaved(300, seed)):
        ids = request.ids if with_ids else ()
        conversation = request.conversation
        if dated:
            turns = (Turn("system", f"It is {number} o'clock."), *conversation.turns[1:])
            conversation = replace(conversation, turns=turns)
        asked = LineRequest(str(number), "zoo", request.key, conversation, ids)
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


def test_with_a_date_in_every_prompt_turns_are_joined_too() -> None:
    """But for a question that was changed: only the newest prompt of a line is known then."""
    found = tally(5, with_answers=True, with_ids=False, dated=True)
    assert found.joined / found.turns >= 0.9
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
        place = lines.find(
            LineRequest(str(number), "zoo", "key", Conversation(turns)), number * 1e-3
        )
        if number % 97 == 0:
            lines.ended(place, "d", answer="an answer", ids=[f"call {number}"])
    assert len(lines._lines) == 1_000
    assert (
        sum(len(each._order) for each in (lines._prompts, lines._ids, lines._sessions))
        <= 2 * 4_000 + 1_000
    )

    def is_forgotten(number: int) -> bool:
        turns = (Turn("user", f"question {number}"), Turn("assistant", "a"), Turn("user", "q"))
        asked = LineRequest(f"{number}+", "zoo", "key", Conversation(turns))
        return is_new(lines.find(asked, 1e3))

    found = [is_forgotten(number) for number in (999_999, 999_500, 998_000, 0)]
    assert found == [False, False, True, True]


def test_a_prompt_that_everybody_asks_has_few_owners(desk: Desk) -> None:
    places = [desk.ask("q1") for _ in range(20)]
    for number, place in enumerate(places):
        desk.lines.ended(place, "d", answer=f"answer {number}")
    asked = [desk.ask("q1", f"answer {number}", "q2") for number in range(20)]
    assert sum(map(is_new, asked)) == 12


# What others know: other workers' lines, and nobody a prompt of its digest.


def told(turn: int, prompt: bytes = b"p" * 16, **changed: object) -> LoggedTurn:
    warm = Warm(900.0, 400, 0.0)
    given = {"deployment": "d1", "warm": warm, **changed}
    return LoggedTurn("r1", "r1", prompt, turn, SMALL, characters=400, **given)  # type: ignore[arg-type]


def test_a_line_that_the_log_tells_of_is_known() -> None:
    lines = Lines(b"key")
    lines.learn(told(3), 1.0)
    (line,) = lines._lines.values()
    assert (line.requests, line.candidate, line.deployment) == (3, SMALL, "d1")
    assert line.warm["d1"].tokens == 900.0
    lines.learn(told(2, deployment="d2"), 2.0)
    assert (line.requests, line.deployment) == (3, "d1"), "it is further here"


def test_the_caches_that_are_remembered_of_a_line_are_bounded() -> None:
    lines = Lines(b"key")
    for number in range(1, WARM + 4):
        lines.learn(told(number, deployment=f"d{number}"), 1.0)
    (line,) = lines._lines.values()
    assert len(line.warm) == WARM
    assert "d1" not in line.warm


async def key_of(path: Path) -> bytes:
    database = create_engine(f"sqlite+aiosqlite:///{path}")
    try:
        await migrate(database)
        return await read_conversation_key(database)
    finally:
        await database.dispose()


async def test_every_database_has_a_key_against_guessed_prompts(tmp_path: Path) -> None:
    first, again, other = [await key_of(tmp_path / name) for name in ("a.db", "a.db", "b.db")]
    assert first == again != other
    assert len(first) == 32
    prompts = [Desk(Lines(key)).ask("q1").prompt for key in (first, again, other)]
    assert prompts[0] == prompts[1] != prompts[2]
    assert len(prompts[0]) == 16
    sessions = [Lines(key).session_digest("mine") for key in (first, again, other)]
    assert sessions[0] == sessions[1] != sessions[2]
    assert Lines(first).session_digest("other") != sessions[0]
    assert len(Lines(first).session_digest("\ud800")) == 32
