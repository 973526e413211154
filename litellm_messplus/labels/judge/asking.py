"""How a judge is asked: whoever calls models hands this in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from litellm_messplus.labels.judge.prompt import Message


@dataclass(frozen=True, slots=True)
class Reply:
    """What a judge wrote, and what that took; ``cost`` in dollars, None where nobody knows it."""

    text: str
    cost: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class JudgeRefusedError(Exception):
    """The judge is there, and will never take this request: it is too long, or not allowed."""


class Ask(Protocol):
    """Asks one judge once, without retries."""

    async def __call__(
        self, messages: Sequence[Message], schema: Mapping[str, Any], timeout_seconds: float
    ) -> Reply:
        """The reply, by the JSON schema where the judge can be held to one.

        Raises JudgeRefusedError, or any other Exception where asking later may do.
        """
        ...
