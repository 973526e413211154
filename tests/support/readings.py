"""A reading of answers that is forced on a proxy: what the engine decides by itself has tests of
its own."""

from pathlib import Path

from tests.support.proxy import Config, in_the_brain

READS = """
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.answer import AnswerReading
from litellm_messplus.core.answer import ANSWER_NUMBERS
from litellm_messplus.runtime.stand_ins import replace

decide, SIGN = Engine.decide, ANSWER_NUMBERS.index({sign!r})


def reading_always(self, question, *given):
    choice = decide(self, question, *given)
    ranking = sorted(question.candidates, key=lambda name: name != {first!r})
    alone = {{"ranking": tuple(ranking), "explored": (), "is_exploration": False}}
    decision = replace(choice.decision, reads=question.may_go_on, **alone)
    return replace(choice, decision=decision)


def reads(self, question, choice, answer):
    if answer[SIGN] == 0.0:
        return AnswerReading(0.74, 0.9)
    return AnswerReading(0.74, 0.31, {then!r}, 0.8)


Engine.decide, Engine.reads = reading_always, reads
"""


def with_forced_reading(
    config: Config, folder: Path, *, first: str, sign: str, then: str
) -> Config:
    """The same, and ``first`` serves, each answer that may be replaced is read, and one with that
    ``sign``, a number of an answer, goes on to ``then``."""
    in_the_brain(folder, READS.format(first=first, sign=sign, then=then))
    return config
