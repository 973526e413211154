"""Which loads are measured: lengths of prompts and completions, at a few concurrencies."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from litellm_messplus.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Cell:
    """One load: requests of about these lengths, so many at a time."""

    prompt_tokens: int
    completion_tokens: int
    concurrency: int


@dataclass(frozen=True, slots=True)
class Grid:
    """Every combination of lengths and concurrencies, ``repeats`` times, ``seconds`` or more each.

    A profile holds for one concurrency, since requests that run together share the work: the
    middle one of those measured, unless ``serving_concurrency`` names another. Raises
    ConfigurationError, which names the option, for a grid that cannot tell its costs apart.
    """

    prompt_tokens: Sequence[int] = (64, 256, 1024)
    completion_tokens: Sequence[int] = (16, 64, 256)
    concurrency: Sequence[int] = (1, 4, 16)
    serving_concurrency: int | None = None
    repeats: int = 2
    seconds: float = 5.0
    idle_windows: int = 5

    def __post_init__(self) -> None:
        for name, values, least in (
            ("--prompt-tokens", self.prompt_tokens, 2),
            ("--completion-tokens", self.completion_tokens, 2),
            ("--concurrency", self.concurrency, 1),
        ):
            if len(set(values)) < max(least, len(values)) or min(values, default=0) < 1:
                allowed = f"at least {least} different numbers from 1 up, such as 4,16"
                raise ConfigurationError(name, ",".join(map(str, values)), allowed)
        if self.serving_concurrency not in (None, *self.concurrency):
            allowed = f"one of --concurrency: {', '.join(map(str, self.concurrency))}"
            raise ConfigurationError("--serving-concurrency", self.serving_concurrency, allowed)
        if not self.seconds > 0:
            raise ConfigurationError("--seconds", self.seconds, "a number above 0")
        if self.repeats < 1:
            raise ConfigurationError("--repeats", self.repeats, "a number from 1 up")
        if self.idle_windows < 3:
            raise ConfigurationError("--idle-windows", self.idle_windows, "a number from 3 up")

    @property
    def served(self) -> int:
        """The concurrency that the profile holds for."""
        middle = sorted(self.concurrency)[len(self.concurrency) // 2]
        return self.serving_concurrency or middle

    def cells(self) -> list[Cell]:
        """Every window to measure, shuffled: a device that warms up must not look like a length."""
        cells = [
            Cell(prompt, completion, concurrency)
            for prompt in self.prompt_tokens
            for completion in self.completion_tokens
            for concurrency in self.concurrency
        ] * self.repeats
        random.Random(0).shuffle(cells)
        return cells

    def warm_up(self) -> list[Cell]:
        """The largest load at every concurrency: what does not fit the model fails here."""
        prompt, completion = max(self.prompt_tokens), max(self.completion_tokens)
        return [Cell(prompt, completion, each) for each in sorted(self.concurrency)]
