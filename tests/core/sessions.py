"""Generated sessions of chats and agents, with what is true of them: which request goes on what."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from litellm_messplus.core.encoder import Conversation, Turn

FIRST_QUESTIONS = ("Fix the failing test.", "What is in this repository?", "Hello", "Go on.")
"""Few, so that many sessions begin alike."""
SYSTEM = Turn("system", "You are a careful engineer. " * 20)
TOOLS = ("bash: Run a command", "edit: Change a file")


@dataclass
class Request:
    """A prompt and its answer. ``session`` is true of it; ``is_first`` where nothing in its words
    can tell that it belongs to an earlier one: a session's opening, a sub-agent's, a compaction."""

    session: int
    key: str
    conversation: Conversation
    answer: Turn
    ids: tuple[str, ...]
    gives: tuple[str, ...]
    is_first: bool


@dataclass
class Session:
    """One user's, or one agent's. It is a generator of its requests, one after the other."""

    number: int
    key: str
    random: random.Random
    turns: list[Turn] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def requests(self) -> Iterator[Request]:
        length = max(1, round(self.random.lognormvariate(3.0, 0.86)))
        self.turns = [SYSTEM, Turn("user", self.random.choice(FIRST_QUESTIONS))]
        is_first = True
        for _ in range(length):
            yield self._ask(is_first=is_first)
            is_first = False
            event = self.random.random()
            if event < 0.02:
                yield from self._side_road(self.turns[:-1])
            elif event < 0.04 and len(self.turns) > 8:
                self._branch()
            elif event < 0.044 and len(self.turns) > 20:
                self._compact()
                is_first = True
            elif event < 0.05:
                yield from self._sub_agent()

    def _ask(self, *, is_first: bool = False, turns: list[Turn] | None = None) -> Request:
        """The answer calls a tool, two times of three; then comes the tool's result, else a user's
        next words. A conversation on a side road leaves the session as it is."""
        prompt = self.turns if turns is None else turns
        is_call = self.random.random() < 0.67
        gives = (f"call_{self.random.getrandbits(96):024x}",) if is_call else ()
        words = f"bash(cat {self.random.getrandbits(40)})" if is_call else self._words("Done")
        request = Request(
            self.number,
            self.key,
            Conversation(tuple(prompt), TOOLS),
            Turn("assistant", words),
            tuple(self.ids),
            gives,
            is_first,
        )
        if turns is None:
            self.ids.extend(gives)
            role = "tool" if is_call else "user"
            self.turns = [*prompt, request.answer, Turn(role, self._words("Next"))]
        return request

    def _words(self, first: str) -> str:
        return f"{first} {self.random.randrange(30)} " + "word " * self.random.randrange(40)

    def _side_road(self, before: list[Turn]) -> Iterator[Request]:
        """The last question again, as a regeneration; and another one in its place, as an edit."""
        turns = before[: max(i for i, turn in enumerate(before) if turn.role == "assistant")]
        if len(turns) > 2:
            yield self._ask(turns=turns)

    def _branch(self) -> None:
        """An earlier question is changed, and the session goes on from there."""
        places = [i for i, turn in enumerate(self.turns) if turn.role != "assistant" and i > 2]
        place = self.random.choice(places[-6:])
        changed = Turn(self.turns[place].role, self._words("Instead"))
        self.turns = [*self.turns[:place], changed]

    def _compact(self) -> None:
        """What was said is summed up, and the newest tool call kept."""
        self.turns = [SYSTEM, Turn("user", f"Summary {self.random.random()}"), *self.turns[-2:]]

    def _sub_agent(self) -> Iterator[Request]:
        """A prompt of its own, of which the session sees a tool's result alone."""
        own = Session(self.number, self.key, self.random)
        own.turns = [Turn("system", "You search files."), Turn("user", self._words("Find"))]
        yield own._ask(is_first=True)
        yield own._ask()


def interleaved(sessions: int, seed: int, *, keys: int = 3, at_once: int = 40) -> Iterator[Request]:
    """Requests of many sessions, so many of them under way at a time."""
    drawn = random.Random(seed)
    waiting = [
        Session(
            number, f"key {drawn.randrange(keys)}", random.Random(f"{seed}/{number}")
        ).requests()
        for number in range(sessions)
    ]
    under_way: list[Iterator[Request]] = []
    while waiting or under_way:
        while waiting and len(under_way) < at_once:
            under_way.append(waiting.pop())
        one = drawn.choice(under_way)
        request = next(one, None)
        if request is None:
            under_way.remove(one)
        else:
            yield request
