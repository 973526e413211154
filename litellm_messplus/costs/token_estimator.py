"""How many tokens a call will use, from what calls used before."""

from dataclasses import dataclass, field

CHARACTERS_PER_TOKEN = 4.0
"""Of an English text, before the first call has told better."""
COMPLETION_TOKENS = 100.0
"""Expected of a candidate that has not answered yet."""
MEMORY = 200
"""Calls that a running mean looks back on, so that it follows a drift."""


@dataclass(slots=True)
class RunningMean:
    """A mean over all values until ``MEMORY`` of them, an exponential one from there on."""

    value: float
    count: int = 0

    def add(self, value: float) -> None:
        self.count += 1
        self.value += (value - self.value) / min(self.count, MEMORY)


@dataclass(slots=True)
class TokenEstimator:
    """Of one candidate. Counting a prompt's tokens exactly takes longer than routing it, so they
    are estimated from its characters, by the ratio that the candidate's own usage showed."""

    characters_per_token: RunningMean = field(
        default_factory=lambda: RunningMean(CHARACTERS_PER_TOKEN)
    )
    prompt_tokens: RunningMean = field(default_factory=lambda: RunningMean(0.0))
    completion_tokens: RunningMean = field(default_factory=lambda: RunningMean(COMPLETION_TOKENS))

    def observe(
        self, prompt_characters: int, prompt_tokens: float, completion_tokens: float
    ) -> None:
        """Learn from the usage that a call reported; a recorded zoo's need not be whole."""
        if prompt_tokens > 0 and prompt_characters > 0:
            self.characters_per_token.add(prompt_characters / prompt_tokens)
        self.prompt_tokens.add(prompt_tokens)
        self.completion_tokens.add(completion_tokens)

    def tokens_of(self, prompt_characters: int) -> float:
        """Tokens expected of a prompt."""
        return prompt_characters / self.characters_per_token.value

    def means(self) -> tuple[RunningMean, ...]:
        """All that is remembered, in a fixed order."""
        return self.characters_per_token, self.prompt_tokens, self.completion_tokens
