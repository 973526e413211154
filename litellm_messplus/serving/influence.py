"""How much a key may move: how often it may judge, and whether its next label counts."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.labels.key_pull import LevelActivity, Said, may_count
from litellm_messplus.labels.source import Cause
from litellm_messplus.runtime.bounded import Bounded
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store.key_activity import activity

# How often each key may do something: a minute's worth at once, and then as it comes in.

VERDICTS_PER_MINUTE = 600
"""Verdicts that one key may give in a minute, to one worker: ten a second is a program's, not a
user's. Administrators of the proxy have no limit."""
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
        per_minute: int = VERDICTS_PER_MINUTE,
        clock: Callable[[], float] = time.monotonic,
        remembered: int = REMEMBERED,
    ) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: Bounded[str | None, _Bucket] = Bounded(remembered)

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
        bucket = self._buckets.newest(key, lambda: _Bucket(float(self._per_minute), now))
        gained = (now - bucket.filled_at) * self._per_minute / 60.0
        bucket.tokens = min(bucket.tokens + gained, float(self._per_minute))
        bucket.filled_at = now
        return bucket


# Whether a key's next label counts, by the labels of all keys of its promise in the last day.

KEYS_LOOK_SECONDS = 5.0
"""How old what is known of the other workers' labels may be; this one's own are known at once."""
MOST_LEVELS = 1000
"""Promises of which it is kept, those of the newest labels."""
UNBOUNDED = 1.0


@dataclass(slots=True)
class _Known:
    level: LevelActivity
    looked_at: float


class KeyInfluence:
    """The influence of each key, counted by one worker. What it says goes into the label's weight,
    so the fold needs no clock."""

    def __init__(
        self, settings: MessplusSettings, database: AsyncEngine, counters: Counters
    ) -> None:
        self._pulls = {name: zoo.labels.key_pull for name, zoo in settings.zoos.items()}
        self._database = database
        self._counters = counters
        self._known: Bounded[tuple[str, str], _Known] = Bounded(MOST_LEVELS)

    async def may_count(self, cause: Cause, said: Said, replaced: Said | None = None) -> bool:
        """Tell whether a label counts, in the place of another one where it replaces it. Where it
        does, it is known of from now on; one that is held is counted.

        Raises SQLAlchemyError where the database does not answer.
        """
        pull, key = self._pulls.get(cause.zoo, UNBOUNDED), cause.key_hash
        if pull >= UNBOUNDED:
            return True
        known = await self._look(cause.zoo, cause.service_level)
        counts = may_count(known, key, said, replaced, least=pull)
        if counts:
            known.keys[key] = known.of(key).after(said, replaced)
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
