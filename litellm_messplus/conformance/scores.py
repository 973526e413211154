"""Checks of a score of one's own; `docs/answers.md` shows how to run them on yours.

Every check raises AssertionError with what was expected, or the function's own exception.
"""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

from litellm_messplus.conformance.encoders import TEXTS
from litellm_messplus.prediction.answer import SCORE_SECONDS, as_score

Score = Callable[[str, str], Any]
"""A function of the prompt's text and the answer's, sync or async."""
PROMPT = TEXTS["a question"]


def gives_scores_of_any_text(score: Score) -> None:
    """Check that any prompt and any answer has a number from -1 to 1, or None."""
    for title, text in TEXTS.items():
        for prompt, answer in ((PROMPT, text), (text, "42"), (text, text)):
            try:
                _scored(score, prompt, answer)
            except (TypeError, ValueError) as error:
                raise AssertionError(f"{title}: {error}") from error


def is_deterministic(score: Score) -> None:
    """Check that the same answer to the same prompt has the same score."""
    for title, text in TEXTS.items():
        first = _scored(score, PROMPT, text)
        _scored(score, "something else", "entirely")
        assert _scored(score, PROMPT, text) == first, f"{title}: the score must not change"


def distinguishes_answers(score: Score) -> None:
    """Check that not all answers have the same score, nor that none has one."""
    found = {_scored(score, PROMPT, text) for text in (*TEXTS.values(), "42", "I cannot say.")}
    assert len(found - {None}) > 0, "some answer must have a score"
    assert len(found) > 1, f"every answer has the score {found.pop()}"


def keeps_its_time(score: Score) -> None:
    """Check that long texts are scored within the limit, after which a score is unknown."""
    long = TEXTS["100,000 characters"]
    best = min(_seconds(score, long) for _ in range(3))
    assert best <= SCORE_SECONDS, f"took {best:.1f} s; at most {SCORE_SECONDS} s"


CHECKS: tuple[Callable[[Score], None], ...] = (
    gives_scores_of_any_text,
    is_deterministic,
    distinguishes_answers,
    keeps_its_time,
)


def check_score(score: Score) -> None:
    """Run every check."""
    for check in CHECKS:
        check(score)


def _scored(score: Score, prompt: str, answer: str) -> float | None:
    found = score(prompt, answer)
    if inspect.isawaitable(found):
        found = asyncio.run(_awaited(found))
    return None if found is None else as_score(found)


async def _awaited(found: Any) -> Any:
    return await found


def _seconds(score: Score, text: str) -> float:
    started = time.perf_counter()
    _scored(score, text, text)
    return time.perf_counter() - started
