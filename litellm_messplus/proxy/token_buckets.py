"""How often each key may do something: a minute's worth at once, and then as it comes in."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

REMEMBERED = 10_000
"""Keys, those that came last; another one begins anew."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class TokenBuckets:
    """One bucket a key, which holds what it may do in a minute."""

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
        remembered: int = REMEMBERED,
    ) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._remembered = remembered
        self._buckets: OrderedDict[str | None, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: str | None) -> float:
        """Take one: 0 where there was one, else the seconds until there is."""
        bucket, per_second = self._filled(key), self._per_minute / 60.0
        if bucket.tokens < 1.0:
            return (1.0 - bucket.tokens) / per_second
        bucket.tokens -= 1.0
        return 0.0

    def _filled(self, key: str | None) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.setdefault(key, _Bucket(float(self._per_minute), now))
        gained = (now - bucket.filled_at) * self._per_minute / 60.0
        bucket.tokens = min(bucket.tokens + gained, float(self._per_minute))
        bucket.filled_at = now
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._remembered:
            self._buckets.popitem(last=False)
        return bucket
