"""What a model has computed of earlier prompts, for the prompts that go on from them."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

from transformers import DynamicCache

KEPT = 64
"""Prompts that are kept for each model: 26 MB at 100 tokens each and 4 kB a token, as the agent's
larger model takes."""


class Prefixes:
    """The ``kept`` texts of a model that were used last, each with its keys and values.

    A text is found where a whole prompt begins with it, and taken out while it is written on, so
    that no two replies share one.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._caches: OrderedDict[tuple[int, ...], DynamicCache] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._caches)

    def take(self, prompt: Sequence[int]) -> tuple[int, DynamicCache | None]:
        """Take the longest text that the prompt begins with: how many tokens, and what is known of
        them.

        At least one token of the prompt is left to be computed.
        """
        tokens = tuple(prompt)
        with self._lock:
            fitting = [
                text
                for text in self._caches
                if len(text) < len(tokens) and text == tokens[: len(text)]
            ]
            if not fitting:
                return 0, None
            longest = max(fitting, key=len)
            return len(longest), self._caches.pop(longest)

    def keep(self, text: Sequence[int], cache: DynamicCache) -> None:
        """Keep what is known of a text, and forget the oldest where there are too many."""
        with self._lock:
            self._caches[tuple(text)] = cache
            self._caches.move_to_end(tuple(text))
            while len(self._caches) > self._kept:
                self._caches.popitem(last=False)
