"""Prompts of about a length, no two of which begin alike."""

import random

WORDS = (
    *("apple", "bridge", "cloud", "dance", "earth", "forest", "garden", "house", "island", "jump"),
    *("kitchen", "letter", "mountain", "number", "ocean", "paper", "question", "river", "stone"),
    *("table", "under", "village", "water", "yellow", "zebra", "music", "night", "open", "quiet"),
)


class Prompts:
    """Random words, drawn anew in every run.

    A server with a cache of prefixes pays for a prompt once. Prompts that began alike, or that an
    earlier run had sent, would be measured as nearly free.
    """

    def __init__(self) -> None:
        self._source = random.Random()
        self._tokens_per_word = 1.0

    def words(self, count: int) -> str:
        """A prompt of that many words."""
        return " ".join(self._source.choices(WORDS, k=count))

    def tokens(self, count: int) -> str:
        """A prompt of about that many tokens, as the last calibration has them."""
        return self.words(max(1, round(count / self._tokens_per_word)))

    def calibrate(self, words: int, tokens: int) -> None:
        """The server counted that many tokens in a prompt of that many words."""
        self._tokens_per_word = tokens / words
