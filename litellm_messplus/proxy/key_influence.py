"""Whether a key's next verdict counts, by what all keys of its promise said in the last day."""

import time
from collections import OrderedDict
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.labels.key_influence import LevelActivity, may_count
from litellm_messplus.settings.schema import MessplusSettings
from litellm_messplus.store.key_activity import activity

LOOK_SECONDS = 5.0
"""How old what is known of the other workers' verdicts may be; this one's own are known at once."""
MOST_LEVELS = 1000
"""Promises of which it is kept, those of the newest verdicts."""
UNBOUNDED = 1.0


@dataclass(slots=True)
class _Known:
    level: LevelActivity
    looked_at: float


class KeyInfluence:
    """One a worker. What it says goes into the label's weight, so the fold needs no clock."""

    def __init__(self, settings: MessplusSettings, database: AsyncEngine) -> None:
        self._influence = {name: zoo.labels.key_influence for name, zoo in settings.zoos.items()}
        self._database = database
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()

    async def may_count(
        self, zoo: str, level: str, key: str | None, value: float, replaced: float | None
    ) -> bool:
        """Whether a verdict of that key counts. Where it does, it is known of from now on.

        Raises SQLAlchemyError where the database does not answer.
        """
        influence = self._influence.get(zoo, UNBOUNDED)
        if influence >= UNBOUNDED:
            return True
        known = await self._look(zoo, level)
        counts = may_count(known, key, value, replaced, influence)
        if counts:
            known.keys[key] = known.of(key).after(value, replaced)
        return counts

    async def _look(self, zoo: str, level: str) -> LevelActivity:
        found = self._known.get((zoo, level))
        if found is None or time.monotonic() - found.looked_at > LOOK_SECONDS:
            looked_at = time.monotonic()
            found = _Known(await activity(self._database, zoo, level), looked_at)
            self._known[zoo, level] = found
        self._known.move_to_end((zoo, level))
        if len(self._known) > MOST_LEVELS:
            self._known.popitem(last=False)
        return found.level
