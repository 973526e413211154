"""A score of one's own: what the operator's function, or the zoo's checks, say of an answer.

It is one of the numbers that answers are read by, trusted as far as it has predicted labels, from
-1 to 1; None says nothing. Whatever fails or takes too long says nothing either, and is counted. A
sync function runs in a thread. It sees the prompt, the text of the answer, and the whole response.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from litellm_messplus.core.answer import SCORE_SECONDS, AnswerSurface, as_score, with_score
from litellm_messplus.labels.checks.check import CheckTimeoutError, LimitedFunction
from litellm_messplus.labels.checks.source import build_checks, load_function
from litellm_messplus.labels.source import AnsweredCall, JudgedRequest
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.surfaces.answers import as_plain
from litellm_messplus.serving.surfaces.surface import Surface
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.settings.serving import BY_CHECKS

Scoring = Callable[[AnsweredCall, object], Awaitable[Any]]
"""What is asked for the score of an answered call, and of its response."""


class AnswerScores:
    """The scores of the zoos that have one. Raises ConfigurationError if one cannot be loaded."""

    def __init__(self, zoos: Mapping[str, ZooSettings], counters: Counters) -> None:
        self._counters = counters
        found = {name: _scoring(name, zoo, counters) for name, zoo in zoos.items()}
        self._scores = {name: each for name, each in found.items() if each is not None}

    def is_on(self, zoo: str) -> bool:
        """Tell whether a zoo has a score."""
        return zoo in self._scores

    async def scored(
        self,
        judged: JudgedRequest | None,
        surface: Surface,
        response: object,
        looks: AnswerSurface | None,
    ) -> AnswerSurface | None:
        """Return what an answer looks like, with its score, if its zoo has one. ``judged`` is its
        request; None where no score wants it."""
        scoring = None if judged is None else self._scores.get(judged.zoo)
        if judged is None or scoring is None or looks is None:
            return looks
        try:
            answer, now = surface.read_answer(response), datetime.now(UTC)
            found = await scoring(AnsweredCall(judged, "", None, True, 1, now, answer), response)
            return looks if found is None else with_score(looks, as_score(found))
        except CheckTimeoutError:
            self._counters.failure("scores_timed_out", f"the score of {judged.zoo} took too long")
        except Exception:
            self._counters.failure("scores_failed", f"the score of {judged.zoo} failed")
        return looks


def _scoring(zoo: str, settings: ZooSettings, counters: Counters) -> Scoring | None:
    key, path = f"messplus.zoos.{zoo}.answer_score", settings.answer_score
    if path is None:
        return None
    if path == BY_CHECKS:
        checks = build_checks(settings.labels.checks, zoo, lambda finding: None, counters)
        if checks is None:
            raise ConfigurationError(key, path, "a function, or `labels.checks` with it")
        least = LimitedFunction(checks.least, SCORE_SECONDS)
        return lambda call, response: least(call)
    function = LimitedFunction(load_function(key, path), SCORE_SECONDS)

    async def by_function(call: AnsweredCall, response: object) -> Any:
        assert call.answer is not None
        text = call.answer.text or call.answer.refusal or ""
        return await function(call.request.conversation.text, text, as_plain(response))

    return by_function
