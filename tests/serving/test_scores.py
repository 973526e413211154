"""A score of one's own is a number of an answer; what fails, is late or no score says nothing."""

import asyncio
import sys
import time
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from litellm import ModelResponse

from litellm_messplus.core.answer import ANSWER_NUMBERS, OWN_SCORE
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving import scores
from litellm_messplus.serving.scores import AnswerScores
from litellm_messplus.serving.surfaces.surface import CHAT_COMPLETIONS
from litellm_messplus.settings.schema import ZooSettings
from tests.support.checking import ended

PLACE = ANSWER_NUMBERS.index(OWN_SCORE)


PROMPT = ended().request.conversation.text


async def _later(prompt: str, answer: str, response: dict[str, Any]) -> float:
    await asyncio.sleep(0.0)
    return 0.5


def _slow(prompt: str, answer: str, response: dict[str, Any]) -> float:
    time.sleep(0.3)
    return 1.0


def _fails(prompt: str, answer: str, response: dict[str, Any]) -> float:
    raise RuntimeError("no")


def _sees(prompt: str, answer: str, response: dict[str, Any]) -> float | None:
    (choice,) = response["choices"]
    assert choice["message"]["reasoning_content"] == "2 + 2"
    assert response["usage"]["completion_tokens"] == 1
    (token,) = choice.pop("logprobs")["content"]
    return float(token["logprob"])


WRONG = {"above": 1.5, "boolean": True, "infinite": float("inf"), "nan": float("nan"), "word": "1"}
FUNCTIONS: dict[str, Any] = {
    **{name: lambda *given, wrong=wrong: wrong for name, wrong in WRONG.items()},
    "sees": _sees,
    "words": lambda prompt, answer, _: -len(answer.split()) / 10 if prompt == PROMPT else 1.0,
    "later": _later,
    "unknown": lambda prompt, answer, response: None,
    "fails": _fails,
    "slow": _slow,
    "ends": lambda prompt, answer, response: sys.exit(1),
}


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ModuleType("own_scores")
    for name, function in FUNCTIONS.items():
        setattr(made, name, function)
    monkeypatch.setitem(sys.modules, "own_scores", made)
    monkeypatch.setattr(scores, "SCORE_SECONDS", 0.1)


def build(counters: Counters, stated: str | None, **checks: bool) -> AnswerScores:
    given: dict[str, Any] = {"alpha": 0.8, "labels": {"checks": checks}}
    zoo = ZooSettings(**given, answer_score=stated)
    return AnswerScores({"zoo": zoo}, counters)


async def scored(
    stated: str | None, text: str = "four words of answer", **checks: bool
) -> tuple[float | None, dict[str, int]]:
    """The score in the numbers of an answer, None if it is not known, and what was counted."""
    counters = Counters()
    found = build(counters, stated, **checks)
    asked = ended(text).request
    response = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
    plain = CHAT_COMPLETIONS.looks(response)
    looks = await found.scored(asked, CHAT_COMPLETIONS, response, plain)
    assert looks is not None
    assert np.array_equal(np.delete(looks, PLACE), np.delete(plain, PLACE), equal_nan=True)
    score = float(looks[PLACE])
    return None if np.isnan(score) else score, counters.as_dict()


async def test_a_zoo_without_one_has_none() -> None:
    assert await scored(None) == (None, {})
    assert not build(Counters(), None).is_on("zoo")
    assert build(Counters(), "own_scores:words").is_on("zoo")


@pytest.mark.parametrize(
    ("name", "number"), [("words", -0.4), ("later", 0.5), ("unknown", None)], ids=str
)
async def test_what_a_function_says_is_a_number(name: str, number: float | None) -> None:
    found, counted = await scored(f"own_scores:{name}")
    assert found == pytest.approx(number)
    assert counted == {}


async def test_a_function_gets_a_copy_of_the_whole_response() -> None:
    tokens = {"content": [{"token": "Four", "logprob": -0.25, "top_logprobs": []}]}
    choice = {"message": {"content": "Four", "reasoning_content": "2 + 2"}, "logprobs": tokens}
    plain = {"choices": [choice], "usage": {"completion_tokens": 1}}
    for response in (plain, ModelResponse(**plain), {"response": plain}):
        looks = CHAT_COMPLETIONS.looks(plain)
        found = await build(Counters(), "own_scores:sees").scored(
            ended().request, CHAT_COMPLETIONS, response, looks
        )
        assert found is not None
        assert found[PLACE] == -0.25
    assert choice["logprobs"] == tokens


@pytest.mark.parametrize("name", ["fails", "ends", *WRONG])
async def test_one_that_fails_says_nothing_and_is_counted(name: str) -> None:
    assert await scored(f"own_scores:{name}") == (None, {"scores_failed": 1})


async def test_one_that_is_late_says_nothing_and_the_event_loop_goes_on_meanwhile() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    assert await scored("own_scores:slow") == (None, {"scores_timed_out": 1})
    ticking.cancel()
    assert ticks >= 3


@pytest.mark.parametrize(("text", "number"), [("fine", None), ("", -1.0)], ids=repr)
async def test_faults_are_a_number_and_doubts_are_none(text: str, number: float | None) -> None:
    assert await scored("checks", text, complete=True) == (number, {})


@pytest.mark.parametrize("stated", ["checks", "own_scores:gone", "nowhere:score"])
def test_one_that_cannot_be_loaded_stops_the_start(stated: str) -> None:
    with pytest.raises(ConfigurationError, match="answer_score"):
        build(Counters(), stated)
