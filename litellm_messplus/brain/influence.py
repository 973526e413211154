"""Influence of a key: how often it may judge, and whether its next label counts."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.labels.key_pull import LabelContent, LevelActivity, may_count
from litellm_messplus.labels.source import Cause
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store.key_activity import activity

# Rate limits by key: a burst of one minute's worth, refilled at a constant rate.

VERDICTS_PER_MINUTE = 600
"""Verdicts per minute that one key may give to one worker: ten a second is a program's rate, not a
user's. Administrators of the proxy have no limit."""
REMEMBERED = 10_000
"""Number of keys remembered, the most recent; a forgotten key begins with a full bucket."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class TokenBuckets:
    """The token buckets, one per key, each holding at most one minute's worth."""

    def __init__(
        self,
        per_minute: int = VERDICTS_PER_MINUTE,
        clock: Callable[[], float] = time.monotonic,
        remembered: int = REMEMBERED,
    ) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: Bounded[str | None, _Bucket] = Bounded(remembered)

    def take(self, key: str | None) -> float:
        """Take one token; return 0 if there was one, else the seconds until there is."""
        bucket, per_second = self._filled(key), self._per_minute / 60.0
        if bucket.tokens < 1.0:
            return (1.0 - bucket.tokens) / per_second
        bucket.tokens -= 1.0
        return 0.0

    def _filled(self, key: str | None) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.newest(key, lambda: _Bucket(float(self._per_minute), now))
        gained = (now - bucket.filled_at) * self._per_minute / 60.0
        bucket.tokens = min(bucket.tokens + gained, float(self._per_minute))
        bucket.filled_at = now
        return bucket


# Whether a key's next label counts, given the labels of all keys of its promise in the last day.

KEYS_LOOK_SECONDS = 5.0
"""Maximum age in seconds of the counts of other workers' labels; this worker's count at once."""
MOST_LEVELS = 1000
"""Promises whose counts are kept, those of the newest labels."""
UNBOUNDED = 1.0


@dataclass(slots=True)
class _Known:
    level: LevelActivity
    looked_at: float


class KeyInfluence:
    """The influence of each key, counted by one worker. Its answer is stored in the label's weight,
    so the fold needs no clock."""

    def __init__(
        self, settings: MessplusSettings, database: AsyncEngine, counters: Counters
    ) -> None:
        self._pulls = {name: zoo.labels.key_pull for name, zoo in settings.zoos.items()}
        self._database = database
        self._counters = counters
        self._known: Bounded[tuple[str, str], _Known] = Bounded(MOST_LEVELS)

    async def may_count(
        self, cause: Cause, content: LabelContent, replaced: LabelContent | None = None
    ) -> bool:
        """Tell whether a label counts, in place of the one that it replaces, if any. One that
        counts is remembered from now on; one that does not increases a counter.

        Raises SQLAlchemyError if the database does not answer.
        """
        pull, key = self._pulls.get(cause.zoo, UNBOUNDED), cause.key_hash
        if pull >= UNBOUNDED:
            return True
        known = await self._look(cause.zoo, cause.service_level)
        counts = may_count(known, key, content, replaced, least=pull)
        if counts:
            known.keys[key] = known.of(key).after(content, replaced)
        else:
            self._counters.add("verdicts_beyond_influence")
        return counts

    async def _look(self, zoo: str, level: str) -> LevelActivity:
        found = self._known.get((zoo, level))
        if found is None or time.monotonic() - found.looked_at > KEYS_LOOK_SECONDS:
            looked_at = time.monotonic()
            found = _Known(await activity(self._database, zoo, level), looked_at)
        self._known[zoo, level] = found
        return found.level
