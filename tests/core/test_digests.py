"""A prompt as a chain of digests: the longest beginning at once, the others when they are asked
for."""

from random import Random

import pytest

from litellm_messplus.core.digests import LOOK_UPS, Chain, Digests
from litellm_messplus.core.encoder import Conversation, Turn

DIGESTS = Digests(b"a key of 32 bytes, for the tests")
SCOPE = ("zoo", "alice")


def chain(*turns: Turn) -> Chain:
    return DIGESTS.chain(SCOPE, Conversation(turns, tools=("look: Look around",)))


@pytest.mark.parametrize("seed", range(20))
def test_a_beginning_is_what_the_prompt_was_that_ended_there(seed: int) -> None:
    draw = Random(seed)
    roles = ("system", "user", "assistant", "assistant", "tool")
    turns = [
        Turn(draw.choice(roles), "é\ud83d x" * draw.randrange(40))
        for _ in range(draw.randrange(60))
    ]
    found = list(chain(*turns).earlier())
    assert [each.turns for each in found] == sorted((each.turns for each in found), reverse=True)
    for each in found:
        assert turns[each.turns].role == "assistant" != turns[each.turns - 1].role
        assert chain(*turns[: each.turns]).whole == each


def test_the_newest_beginnings_of_a_long_prompt_are_looked_up() -> None:
    spoken = (Turn("user", "and?"), Turn("assistant", "so."))
    found = list(chain(*(spoken * 100)).earlier())
    assert [each.turns for each in found] == [199 - 2 * place for place in range(LOOK_UPS)]


def test_a_first_question_has_no_beginning() -> None:
    assert chain(Turn("user", "hello")).longest is None
    assert list(chain(Turn("assistant", "hello"), Turn("user", "hello")).earlier()) == []
