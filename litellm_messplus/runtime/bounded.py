"""A map in bounded memory that keeps the newest entries."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Bounded(OrderedDict[K, V], Generic[K, V]):
    """A map of at most ``most`` entries. Setting a key makes it newest; the oldest are dropped."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        if key in self:
            self.move_to_end(key)
        super().__setitem__(key, value)
        while len(self) > self._most:
            self.popitem(last=False)

    def newest(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, made if missing, and make the key the newest."""
        found = self[key] if key in self else make()
        self[key] = found
        return found
