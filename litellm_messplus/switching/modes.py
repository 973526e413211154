"""The mode of a zoo: whether the router decides aside, for a share of conversations, or for all."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from litellm_messplus.rows import column, public, record
from litellm_messplus.runtime.vocabulary import WARM_UP


class Mode(StrEnum):
    """The steps of switching over."""

    WATCH = "watch"
    CANARY = "canary"
    ON = "on"


class Arm(StrEnum):
    """The ways in which a request is served: as the router chose, or as before."""

    ROUTED = "routed"
    BEFORE = "before"


LITELLM = "litellm"
"""The value of `before` for LiteLLM's own choice among all deployments of the zoo."""
GROUP_PREFIX = "group:"
"""Begins the value of `before` for LiteLLM's own choice among the deployments of one `model_name`,
in a zoo that is a routing group of several."""
DEFAULT_SHARE = 0.1


def group_value(group: str) -> str:
    """Name what served before, where that was a group of LiteLLM's."""
    return f"{GROUP_PREFIX}{group}"


def group_of(before: str | None) -> str | None:
    """Name the group that served before; None where it was none."""
    is_one = before is not None and before.startswith(GROUP_PREFIX)
    return before.removeprefix(GROUP_PREFIX) if before is not None and is_one else None


def is_of_litellm(before: str) -> bool:
    """Tell whether LiteLLM chooses among several models, so that nobody knows beforehand."""
    return before == LITELLM or group_of(before) is not None


@dataclass(frozen=True, slots=True)
class ZooMode:
    """The mode of one zoo. ``share`` of the conversations is routed under `canary`; ``before`` is
    what serves the others, None where there is no way back. ``revision`` 0 is the file's own value,
    which nobody has changed. ``holdout`` of the conversations stay as before under `on`: the file
    alone says it."""

    mode: Mode = Mode.ON
    share: float = DEFAULT_SHARE
    before: str | None = None
    revision: int = 0
    holdout: float = 0.0

    @property
    def routed_share(self) -> float:
        """The share of the conversations that is routed."""
        if self.mode is Mode.CANARY:
            return self.share
        return 0.0 if self.mode is Mode.WATCH else 1.0 - self.holdout

    @property
    def draws(self) -> bool:
        """Whether it matters of which conversation a request is."""
        return self.routed_share < 1.0

    @property
    def splits(self) -> bool:
        """Whether some conversations are routed, and others are not."""
        return 0.0 < self.routed_share < 1.0

    @property
    def can_return(self) -> bool:
        """Whether there is something to return to."""
        return self.mode is not Mode.WATCH and self.before is not None

    def arm(self, draw: float | None) -> Arm:
        """Choose how a conversation is served by its draw: one that is routed at a share stays so
        at every larger one."""
        if self.splits and draw is not None:
            return Arm.ROUTED if draw < self.routed_share else Arm.BEFORE
        return Arm.BEFORE if self.mode is Mode.WATCH else Arm.ROUTED

    def problem(self, known: Collection[str]) -> str | None:
        """Say what is wrong with it in a zoo of these names, and what is allowed; None where
        nothing is."""
        allowed = " or ".join((LITELLM, *known))
        if self.before is None and self.mode is not Mode.ON:
            return f"before: given nothing; allowed under {self.mode}: {allowed}"
        if self.before is not None and self.before not in (LITELLM, *known):
            return f"before: given '{self.before}'; allowed: {allowed}"
        return None

    @property
    def fingerprint(self) -> str:
        """The digest by which a changed value of the file is told from one that was there."""
        plain = json.dumps([self.mode, self.share, self.before])
        return sha256(plain.encode()).hexdigest()[:16]


# The part of a request's row that tells of the switch-over.


@record
class Trial:
    """The arm of a request, and of one that was served as before, the router's choice."""

    arm: Arm = public(
        "`routed`, or `before`: what served before the zoo was switched on served it, and the "
        "router decided aside.",
        size=16,
        earlier=Arm.ROUTED,
        default=Arm.ROUTED,
    )
    would_choose: str | None = public(
        "Served as before: the candidate that the router would have chosen; NULL where it was "
        "not worked out in time, and of a routed request.",
        default=None,
    )
    would_cost: float | None = public(
        "Served as before: what that candidate, and the calls beside it, were expected to cost.",
        default=None,
    )
    sample_probability: float | None = public(
        "Served as before: the probability of the draw that had another model called unseen; "
        "NULL where none was called.",
        default=None,
    )
    conversation_draw: float | None = column(
        "The draw of its conversation, from 0 to 1: below the share of a canary it is routed. "
        "NULL under `mode: on`.",
        default=None,
    )

    def drawn(self, *, is_served: bool) -> float | None:
        """Return the probability with which an answer was asked for; None of one that always is."""
        return self.sample_probability if self.arm is Arm.BEFORE and not is_served else None

    def is_of_choice(self, candidate: str | None, *, chosen: str, is_served: bool) -> bool | None:
        """Tell of a request that was served as before whether an answer, of the candidate, is one
        of the model that the router would have chosen; None of a routed request. Where that model
        was called unseen, the served answer does not count too."""
        if self.arm is not Arm.BEFORE:
            return None
        author = candidate or (chosen if is_served else None)
        if author is None or author != self.would_choose:
            return False
        return not is_served or self.sample_probability is None or author == chosen


ROUTED = Trial()


# How many of the requests that are served as before are decided aside: a fair sample of them. A
# decision costs more than all else that is done for such a request. The forecast rests on some
# thousand of them, so in a busy zoo most would be made for nothing.


DECIDED_PER_SECOND = 5.0
"""Requests served as before that are decided all the same, in a second of one worker, beside those
of the sample: enough for the forecast, and next to nothing of a core."""


class Pace:
    """The decisions that may be made: the first of all, so that the router learns at once, then so
    many a second. What one second leaves over, the next does not have."""

    def __init__(self, per_second: float, first: int = WARM_UP) -> None:
        self._per_second = per_second
        self._left = float(first)
        self._looked: float | None = None

    def take(self, now: float) -> bool:
        """Take one, at a time in seconds; False where there is none left."""
        gained = 0.0 if self._looked is None else (now - self._looked) * self._per_second
        most = max(self._per_second, 1.0)
        self._left = max(self._left, min(self._left + gained, most))
        self._looked = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
