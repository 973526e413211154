"""The limits in addition to alpha as a fold: late requests, and the cost of the day.

One account per service level with a limit, opened by its first such request. As with alpha, a
request whose calls have not ended counts with its expected use: a slow call is known to be slow
only when it has ended, and by then many more would have gone to the same model.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from litellm_messplus.routing.limits import DAY, LATE_SHARE, Limits, after
from litellm_messplus.state.entries import Decided, LimitedCall, LimitedUse, Settled

PENDING = 4096
"""The number of newest requests whose served call is waited for."""
WAIT_SECONDS = 3600.0
"""The longest wait for a call, in seconds: after that its worker is taken to be gone."""


# The limits of a request in the log, in its column `limits`.


def logged(limits: Limits, expected: LimitedUse) -> dict[str, Any]:
    """Return the value to log, with the limits that are set."""
    found: dict[str, Any] = {"expected": expected._asdict(), "binding": limits.binding}
    if limits.late_after is not None:
        found |= {
            "late_after": limits.late_after,
            "late_owed": limits.late_owed,
            "late_price": limits.charge,
            "late": {name: each.now for name, each in limits.late.items()},
        }
    if limits.budget is not None:
        found |= {name: getattr(limits, name) for name in ("budget", "spent", "allowed", "strain")}
    return found


def unfollowed(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the value to log if another than the chosen candidate serves: its call counts when it
    has ended, nothing is expected before, and no limit is binding."""
    if found is None:
        return None
    return {**found, "expected": LimitedUse(LATE_SHARE, 0.0)._asdict(), "binding": None}


def expected_use(found: Mapping[str, Any] | None) -> LimitedUse | None:
    """Read the expected use of a request; None if it was decided without limits."""
    return None if found is None else LimitedUse(**found["expected"])


def is_late(
    found: Mapping[str, Any], seconds: float | None, *, is_answered: bool, is_repeated: bool
) -> bool | None:
    """Tell whether an answer was late by the limit of its request; None if unknown: without a
    limit, an answer or a time. LiteLLM's cache is never late."""
    if "late_after" not in found or not is_answered:
        return None
    if is_repeated:
        return False
    return None if seconds is None else bool(seconds > found["late_after"])


def day_of(at: float) -> int:
    """Return the number of the day (UTC) of a time in seconds since 1970."""
    return int(at // DAY)


class Pending(NamedTuple):
    """A request whose served call has not ended: when it was decided, and its expected use."""

    at: float
    late: float
    cost: float


@dataclass(slots=True)
class LimitAccount:
    """The account of one service level: ``owed`` late requests beyond the allowed share, and the
    ``ended_cost`` of ended calls of requests decided on ``day``. The expected sums are over
    ``pending``, that of costs only over requests of the day."""

    owed: float = 0.0
    day: int = 0
    ended_cost: float = 0.0
    expected_late: float = 0.0
    expected_cost: float = 0.0
    pending: OrderedDict[str, Pending] = field(default_factory=OrderedDict)

    @property
    def late_owed(self) -> float:
        """The expected number of late requests owed."""
        return self.owed + self.expected_late

    def spent(self, day: int) -> float:
        """Return the expected cost of the requests of a day."""
        return self.ended_cost + self.expected_cost if day == self.day else 0.0

    def decided(self, request_id: str, expected: Pending) -> None:
        """Add a decided request to the pending ones."""
        if day_of(expected.at) > self.day:
            self.day, self.ended_cost, self.expected_cost = day_of(expected.at), 0.0, 0.0
        self.pending[request_id] = expected
        self.expected_late += expected.late - LATE_SHARE
        if day_of(expected.at) == self.day:
            self.expected_cost += expected.cost
        while self._is_lost(next(iter(self.pending.values())), expected.at):
            self._close(next(iter(self.pending)))

    def ended(self, call: LimitedCall) -> None:
        """Count an ended call; one of unknown cost counts with the expected cost."""
        cost = call.cost
        if call.is_served:
            expected = self._close(call.request_id)
            if cost is None and expected is not None:
                cost = expected.cost
            if call.is_late is not None:
                self.owed = after(self.owed, is_late=call.is_late)
        if cost is not None and day_of(call.at) == self.day:
            self.ended_cost += cost

    def plain(self) -> dict[str, Any]:
        """Return it as JSON."""
        pending = [[name, *each] for name, each in self.pending.items()]
        return {
            **{each.name: getattr(self, each.name) for each in fields(self)},
            "pending": pending,
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "LimitAccount":
        """Rebuild the account from ``plain``."""
        pending = OrderedDict((name, Pending(*rest)) for name, *rest in plain["pending"])
        return cls(**{**plain, "pending": pending})

    def _is_lost(self, oldest: Pending, now: float) -> bool:
        return len(self.pending) > PENDING or oldest.at < now - WAIT_SECONDS

    def _close(self, request_id: str) -> Pending | None:
        closed = self.pending.pop(request_id, None)
        if closed is None:
            return None
        # A running sum accumulates rounding errors: reset once nothing is pending.
        self.expected_late -= closed.late - LATE_SHARE
        if day_of(closed.at) == self.day:
            self.expected_cost -= closed.cost
        if not self.pending:
            self.expected_late = self.expected_cost = 0.0
        return closed


class LimitAccounts:
    """The accounts of a zoo by service level; a level without limits has none."""

    def __init__(self) -> None:
        self._accounts: dict[str, LimitAccount] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no level has ever had a limit."""
        return not self._accounts

    def account(self, level: str) -> LimitAccount:
        """Return the account of a level; a new one owes nothing, and is stored only with its first
        entry."""
        return self._accounts.get(level) or LimitAccount()

    def decided(self, entry: Decided) -> None:
        """Fold a decision in."""
        if entry.expected_use is not None:
            account = self._accounts.setdefault(entry.service_level, LimitAccount())
            account.decided(entry.request_id, Pending(entry.at, *entry.expected_use))

    def ended(self, entry: Settled) -> None:
        """Fold the end of a call in."""
        if entry.limited is not None:
            self._accounts.setdefault(entry.limited.service_level, LimitAccount()).ended(
                entry.limited
            )

    def view(self) -> dict[str, Any]:
        """Return what decisions need of ``plain``: no pending requests, but their sums."""
        return {name: {**each.plain(), "pending": []} for name, each in self._accounts.items()}

    def plain(self) -> dict[str, Any]:
        """Return them as JSON."""
        return {name: account.plain() for name, account in self._accounts.items()}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "LimitAccounts":
        """Rebuild them from ``plain``."""
        found = cls()
        found._accounts = {name: LimitAccount.of(each) for name, each in plain.items()}
        return found
