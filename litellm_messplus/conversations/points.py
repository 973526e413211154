"""What digests lead to, in bounded memory: the oldest are forgotten."""

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from litellm_messplus.conversations.digests import Digest

POINTS = 100_000
"""Digests that are remembered, the newest: 3,000 agents' sessions of 30 requests."""
OWNERS = 8
"""Owners of one digest, the newest: so many ask the same without being mixed up."""

Owner = TypeVar("Owner")


class _Point(Generic[Owner]):
    """One owner of a digest, the answer that it got there, and the owner before it."""

    __slots__ = ("answer", "before", "owner")

    def __init__(self, owner: Owner, before: "_Point[Owner] | None") -> None:
        self.owner = owner
        self.before = before
        self.answer: Digest | None = None


class Points(Generic[Owner]):
    """The owners of at most ``most`` digests; each is as new as its newest owner, and has few."""

    def __init__(self, most: int = POINTS) -> None:
        self._most = most
        self._newest: dict[Digest, _Point[Owner]] = {}
        self._order: deque[Digest] = deque()

    def __len__(self) -> int:
        return len(self._order)

    def add(self, digest: Digest, owner: Owner) -> None:
        """Remember an owner, and forget the oldest digest where they are too many."""
        before = self._newest.get(digest)
        if before is not None and before.owner is owner:
            return
        self._newest[digest] = _Point(owner, before)
        if before is not None:
            self._shorten(digest)
            return
        self._order.append(digest)
        if len(self._order) > self._most:
            del self._newest[self._order.popleft()]

    def answered(self, digest: Digest, owner: Owner, answer: Digest) -> None:
        """Remember what the owner got there; nothing where it is forgotten."""
        for point in self._of(digest):
            if point.owner is owner:
                point.answer = answer

    def owners(self, digest: Digest, answer: Digest | None = None) -> list[Owner]:
        """List the owners, the newest last; where an answer is given, only those that got it."""
        found = [p.owner for p in self._of(digest) if answer is None or p.answer == answer]
        return found[::-1]

    def _of(self, digest: Digest) -> Iterator[_Point[Owner]]:
        point = self._newest.get(digest)
        while point is not None:
            yield point
            point = point.before

    def _shorten(self, digest: Digest) -> None:
        for place, point in enumerate(self._of(digest), start=1):
            if place == OWNERS:
                point.before = None
