"""The mode of a zoo: whether the router decides in shadow, for a share of requests, or for all."""

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
    """The ways in which a request is served: as the router chose, or as before, by the zoo's mode
    or since the client switched routing off."""

    ROUTED = "routed"
    BEFORE = "before"
    OFF = "off"


LITELLM = "litellm"
"""The value of `before` for LiteLLM's own choice among all deployments of the zoo."""
GROUP_PREFIX = "group:"
"""Prefix of a value of `before` that means LiteLLM's own choice among the deployments of one
`model_name`, in a zoo that is a routing group of several."""
DEFAULT_SHARE = 0.1


def group_value(group: str) -> str:
    """Return the value of `before` for a group of LiteLLM's."""
    return f"{GROUP_PREFIX}{group}"


def group_of(before: str | None) -> str | None:
    """Return the group that served before; None if it was none."""
    is_one = before is not None and before.startswith(GROUP_PREFIX)
    return before.removeprefix(GROUP_PREFIX) if before is not None and is_one else None


def is_of_litellm(before: str) -> bool:
    """Tell whether LiteLLM chooses among several models, so that its choice is not known before."""
    return before == LITELLM or group_of(before) is not None


def mode_in_words(mode: str, share: float, before: str | None) -> str:
    """Describe how far a zoo is switched on, and what serves the requests it does not route."""
    of = f" of {share:.3g}" if mode == Mode.CANARY else ""
    return f"{mode}{of}, before {before or 'nothing: no way back'}"


@dataclass(frozen=True, slots=True)
class ZooMode:
    """The mode of one zoo. Under `canary`, ``share`` of the conversations is routed; ``before``
    serves the others, None if there is no way back. ``revision`` 0 is the file's own value, never
    changed. ``holdout`` of the conversations stay as before under `on`; only the file sets it."""

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
        """Whether the arm depends on a request's conversation."""
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
        """Choose the arm of a conversation by its draw: one that is routed at a share stays so at
        every larger one."""
        if self.splits and draw is not None:
            return Arm.ROUTED if draw < self.routed_share else Arm.BEFORE
        return Arm.BEFORE if self.mode is Mode.WATCH else Arm.ROUTED

    def problem(self, known: Collection[str]) -> str | None:
        """Return what is wrong with the mode in a zoo of these names, and what is allowed; None if
        nothing is."""
        allowed = " or ".join((LITELLM, *known))
        if self.before is None and self.mode is not Mode.ON:
            return f"before: given nothing; allowed under {self.mode}: {allowed}"
        if self.before is not None and self.before not in (LITELLM, *known):
            return f"before: given '{self.before}'; allowed: {allowed}"
        return None

    @property
    def fingerprint(self) -> str:
        """The digest that distinguishes a changed value of the file from an earlier one."""
        plain = json.dumps([self.mode, self.share, self.before])
        return sha256(plain.encode()).hexdigest()[:16]


# The columns of a request's row about the switch-over.


@record
class Trial:
    """The arm of a request, and of one that was served as before, the router's choice."""

    arm: Arm = public(
        "`routed`, or `before`: served by what served before the zoo was switched on, while the "
        "router decided in parallel; `off`: the same without a decision, as the client asked.",
        size=16,
        earlier=Arm.ROUTED,
        default=Arm.ROUTED,
    )
    would_choose: str | None = public(
        "If served as before: the candidate that the router would have chosen; NULL if not decided "
        "in time, and for a routed request.",
        default=None,
    )
    would_cost: float | None = public(
        "If served as before: the expected cost of that candidate and of the calls in parallel.",
        default=None,
    )
    sample_probability: float | None = public(
        "If served as before: the probability of the draw for an unseen call of another model; "
        "NULL if none was called.",
        default=None,
    )
    conversation_draw: float | None = column(
        "The draw of its conversation, from 0 to 1: below the share of a canary it is routed. "
        "NULL under `mode: on`.",
        default=None,
    )

    def drawn(self, *, is_served: bool) -> float | None:
        """Return the probability of requesting an answer; None for one that is always requested."""
        return self.sample_probability if self.arm is Arm.BEFORE and not is_served else None

    def is_of_choice(self, candidate: str | None, *, chosen: str, is_served: bool) -> bool | None:
        """Tell whether an answer of the candidate to a request served as before is by the model
        that the router would have chosen; None for a routed request. If that model was called
        unseen, the served answer does not count in addition."""
        if self.arm is Arm.ROUTED:
            return None
        author = candidate or (chosen if is_served else None)
        if author is None or author != self.would_choose:
            return False
        return not is_served or self.sample_probability is None or author == chosen


ROUTED = Trial()


# The share of requests served as before that are decided in shadow: a fair sample. A decision costs
# more than all else done for such a request. The forecast rests on some thousand of them, so in a
# busy zoo most would be wasted.


DECIDED_PER_SECOND = 5.0
"""Requests served as before that are decided all the same, per second of one worker, in addition to
those of the sample: enough for the forecast, and next to nothing of a core."""


class Pace:
    """A limit on decisions: the first ones without delay, so that the router learns at once, then
    so many per second. Unused ones do not carry over to the next second."""

    def __init__(self, per_second: float, first: int = WARM_UP) -> None:
        self._per_second = per_second
        self._left = float(first)
        self._looked: float | None = None

    def take(self, now: float) -> bool:
        """Take one, at a time in seconds; return False if none is left."""
        gained = 0.0 if self._looked is None else (now - self._looked) * self._per_second
        most = max(self._per_second, 1.0)
        self._left = max(self._left, min(self._left + gained, most))
        self._looked = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
