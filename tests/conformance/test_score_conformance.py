"""The checks of a score pass one that keeps to the protocol, and find one that does not."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from litellm_messplus.conformance import scores
from litellm_messplus.conformance.scores import CHECKS, Score, check_score


def shared_words(prompt: str, answer: str) -> float | None:
    """As in `docs/answers.md`."""
    if not answer.strip():
        return -1.0
    sought, found = set(prompt.lower().split()), set(answer.lower().split())
    return len(sought & found) / len(found) if found else None


async def asynchronous(prompt: str, answer: str) -> float | None:
    return shared_words(prompt, answer)


@pytest.mark.parametrize("score", [shared_words, asynchronous])
def test_a_score_that_keeps_to_the_protocol_passes(score: Score) -> None:
    check_score(score)


class Broken:
    """The example with one fault, named by the check that must find it."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.calls = 0

    def __call__(self, prompt: str, answer: str) -> Any:
        self.calls += 1
        match self.fault:
            case "gives_scores_of_any_text":
                return float(len(answer))
            case "is_deterministic":
                return 1.0 / self.calls
            case "distinguishes_answers":
                return 0.5
            case "keeps_its_time":
                time.sleep(len(answer) / 1e6)
        return shared_words(prompt, answer)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_fault_is_found_by_its_check(
    check: Callable[[Score], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "SCORE_SECONDS", 0.05)
    broken = Broken(check.__name__)

    with pytest.raises(AssertionError):
        check(broken)
    with pytest.raises(AssertionError):
        check_score(broken)


@pytest.mark.parametrize("found", [True, "good", 1.5, float("nan"), float("inf")], ids=repr)
def test_what_is_no_number_from_minus_one_to_one_is_refused(found: object) -> None:
    with pytest.raises(AssertionError):
        check_score(lambda prompt, answer: found)


def test_one_that_never_says_anything_is_found() -> None:
    with pytest.raises(AssertionError, match="some answer must have a score"):
        check_score(lambda prompt, answer: None)
