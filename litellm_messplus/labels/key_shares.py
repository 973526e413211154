"""How much of a day's money for labels the requests of one key may cost.

One client must not take the labels of all others, by many requests or by long ones. Each key has a
part of what a worker may spend in a day: twice its share of the requests, up to a half, so that one
with longer prompts than the others is not held. The other keys together keep theirs by the same
rule, so one that makes nearly all of the requests may have nearly all of the money. A key's first
labels come before it has a share.

Pure: the day comes in as an argument. What a worker does not remember begins anew.
"""

from dataclasses import dataclass
from datetime import date

from litellm_messplus.bounded import Bounded

ROOM = 2.0
"""Times its share of the requests: the share of the money that a key may have."""
HALF = 0.5
START = 0.05
"""The share of the money that any key may have, however few its requests are."""
REMEMBERED = 10_000
"""Keys, those that asked last."""


@dataclass(slots=True)
class _Key:
    requests: int = 0
    spent: float = 0.0


class KeyShares:
    """The keys of one zoo, as one worker sees them in a day."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._begin(date.min)

    def __len__(self) -> int:
        return len(self._keys)

    def asked(self, key: str | None, today: date) -> None:
        """Count a request; that of a new day begins all keys anew."""
        if today != self._day:
            self._begin(today)
        self._of(key).requests += 1
        self._requests += 1

    def allows(self, key: str | None, cost: float, left: float, day: float) -> bool:
        """Tell whether labels of a key may cost so much more. Of the money of a whole ``day`` a
        worker has what it has spent and what is ``left`` for it, from which what is bought and not
        yet paid need not be taken off."""
        own = self._of(key)
        share = own.requests / max(self._requests, 1)
        others = min(ROOM * (1.0 - share), HALF)
        part = max(START, min(ROOM * share, 1.0 - others))
        return own.spent + cost <= part * min(self._spent + left, day)

    def spend(self, key: str | None, cost: float) -> None:
        """Count what labels of a key cost; below 0 what they did not cost after all."""
        self._of(key).spent += cost
        self._spent += cost

    def _begin(self, day: date) -> None:
        self._day = day
        self._keys: Bounded[str | None, _Key] = Bounded(self._remembered)
        self._requests, self._spent = 0, 0.0

    def _of(self, key: str | None) -> _Key:
        return self._keys.newest(key, _Key)
