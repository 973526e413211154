"""How far the verdicts of one key may move what a promise is held to.

All keys of a service level share its queue, so one that calls every answer unsatisfactory makes the
others' requests expensive. Its verdicts count as long as they could be those of the others' users
by chance, or move the satisfaction of the day by no more than a small share; and a key that makes
much of the requests is much of what the promise is about.
"""

import math
from dataclasses import dataclass, field

ENOUGH = 20
"""Verdicts of the other keys, below which there is nothing to hold one against."""
ERRORS = 2.0
"""Standard errors that are called chance."""
LARGE = 0.25
"""Of the requests: what a key makes above that share may have verdicts as it likes."""


@dataclass(slots=True)
class KeyActivity:
    """Of one key: its requests, and of its calls with a verdict that counts the number and the
    sum."""

    requests: int = 0
    judged: int = 0
    satisfied: float = 0.0

    def after(self, value: float, replaced: float | None) -> "KeyActivity":
        """With one more verdict, in the place of another one where it replaces it."""
        more, gone = (1, 0.0) if replaced is None else (0, replaced)
        return KeyActivity(self.requests, self.judged + more, self.satisfied + value - gone)


@dataclass(slots=True)
class LevelActivity:
    """Of one promise over the last day: all its requests, and the keys that judge most."""

    requests: int = 0
    keys: dict[str | None, KeyActivity] = field(default_factory=dict)

    def of(self, key: str | None) -> KeyActivity:
        return self.keys.get(key, KeyActivity())


def may_count(
    level: LevelActivity, key: str | None, value: float, replaced: float | None, influence: float
) -> bool:
    """Whether one more verdict of a key may count. ``influence`` is the share by which one key may
    move the satisfaction of the day; what brings it nearer to the others' may in any case."""
    own = level.of(key)
    after = own.after(value, replaced)
    judged = sum(each.judged for each in level.keys.values()) - own.judged
    if judged < ENOUGH:
        return True
    satisfied = sum(each.satisfied for each in level.keys.values()) - own.satisfied
    usual = (satisfied + 1.0) / (judged + 2.0)
    apart = abs(after.satisfied - after.judged * usual)
    if apart <= abs(own.satisfied - own.judged * usual):
        return True
    by_chance = ERRORS * math.sqrt(after.judged * usual * (1.0 - usual))
    share = influence + max(own.requests / max(level.requests, 1) - LARGE, 0.0)
    return apart <= max(by_chance, 1.0, share * (judged + after.judged))
