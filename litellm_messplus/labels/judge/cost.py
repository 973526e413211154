"""What asking a judge costs, in dollars, as it is expected before: by what the judge reads."""

from collections.abc import Sequence

from litellm_messplus.costs.price import Price
from litellm_messplus.costs.usage import RecentMean, TokenEstimator
from litellm_messplus.labels.judge.prompt import CONVERSATION_CHARACTERS, Message

REST = 2_500
"""Bytes that a judge reads beside the conversation (instructions and answers), before it has been
asked."""


class JudgeCost:
    """The expected cost of asking one judge: its price, for the tokens of what it reads and for as
    many as it usually writes. None while its price is unknown.

    Tokens are estimated from the bytes of a text: how many bytes a token has differs far less
    between scripts than how many characters.
    """

    def __init__(self, price: Price | None = None) -> None:
        self.price = price
        self._tokens = TokenEstimator()
        self._rest = RecentMean(REST)

    def of_request(self, prompt: str) -> float | None:
        """Expect the cost for a request whose answers are unknown yet: they will be as long as
        usual."""
        return self._of(_shown(prompt) + self._rest.value)

    def of_messages(self, messages: Sequence[Message]) -> float | None:
        """Expect the cost for what the judge is about to read."""
        return self._of(_read(messages))

    def learn(
        self,
        prompt: str,
        messages: Sequence[Message],
        prompt_tokens: int | None,
        completion_tokens: int | None,
    ) -> None:
        """Learn from what the judge has read for a request, and has written, in tokens; None where
        none were reported."""
        read = _read(messages)
        self._rest.add(max(read - _shown(prompt), 0.0))
        if prompt_tokens is not None and completion_tokens is not None:
            self._tokens.observe(read, prompt_tokens, completion_tokens)

    def _of(self, read: float) -> float | None:
        if self.price is None:
            return None
        tokens = read / self._tokens.characters_per_token.value
        return self.price.of(tokens, self._tokens.completion_tokens.value)


def _read(messages: Sequence[Message]) -> int:
    return sum(_bytes(message["content"]) for message in messages)


def _shown(prompt: str) -> float:
    """Count the bytes of a conversation that a judge gets to see: long ones are shortened."""
    return _bytes(prompt) * min(CONVERSATION_CHARACTERS / max(len(prompt), 1), 1.0)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
