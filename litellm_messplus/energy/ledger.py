"""Windows and the calls that ran in them, until it is known who used what. Knows no clock.

A window is settled some time after its end, when the calls that were still running then have
ended too: its joules go to the calls that overlap it. A call's joules are the sum over its windows.
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from litellm_messplus.counters import Counters
from litellm_messplus.energy.apportion import Call, Span, apportion
from litellm_messplus.energy.correction import Correction, is_absurd

COVERED = 0.99
"""Share of a call's time that must have been measured for its joules to count as measured."""
MAX_CALLS = 100_000
"""More are not held, should windows fail to come."""


@dataclass(slots=True)
class _Open:
    """A call that waits for its windows."""

    call: Call
    joules: float = 0.0
    covered: float = 0.0


@dataclass(frozen=True, slots=True)
class _Window:
    """``joules`` above idle; None for a window that was not measured."""

    span: Span
    joules: float | None


@dataclass(frozen=True, slots=True)
class MeasuredCall:
    """The joules of one call, above idle."""

    call_id: str
    deployment_id: str
    joules: float


class Ledger:
    """``lag_seconds`` after its end, a window is settled, and what is left out is counted."""

    def __init__(self, lag_seconds: float, counters: Counters) -> None:
        self._lag, self._counters = lag_seconds, counters
        self._windows: deque[_Window] = deque()
        self._calls: list[_Open] = []
        self._corrections: dict[str, Correction] = {}

    def ended(self, call: Call) -> None:
        """A call has ended; its estimate is the profile's own, uncorrected.

        One whose estimate is no number from 0 up takes part in nothing.
        """
        if not 0 <= call.estimated_joules < math.inf or len(self._calls) >= MAX_CALLS:
            self._counters.add("energy_calls_not_measured")
            return
        self._calls.append(_Open(call))

    def window(self, span: Span, joules: float | None) -> None:
        """A window has ended; windows come in their order."""
        self._windows.append(_Window(span, joules))

    def correction(self, deployment_id: str) -> float:
        """The factor for estimates of that deployment's profile."""
        found = self._corrections.get(deployment_id)
        return 1.0 if found is None else found.factor

    def settle(self, now: float) -> list[MeasuredCall]:
        """Settle the windows that are due, and give the calls whose windows are all measured."""
        found: list[MeasuredCall] = []
        while self._windows and self._windows[0].span.end + self._lag <= now:
            window = self._windows.popleft()
            if window.joules is not None:
                self._divide(window.span, window.joules)
            found += self._finished(window.span.end)
        return found

    def _divide(self, span: Span, joules: float) -> None:
        shares = [(each, span.share_of(each.call)) for each in self._calls]
        present = [(each, share) for each, share in shares if share > 0]
        weights = [
            each.call.estimated_joules * share * self.correction(each.call.deployment_id)
            for each, share in present
        ]
        expected: defaultdict[str, float] = defaultdict(float)
        for (each, _), weight in zip(present, weights, strict=True):
            expected[each.call.deployment_id] += weight
        if not sum(weights) > 0:
            self._counters.add("energy_windows_without_calls")
        elif not self._follow(joules, expected):
            self._counters.add("energy_readings_dropped")
        else:
            for (each, share), part in zip(present, apportion(joules, weights), strict=True):
                each.joules += part
                each.covered += share

    def _follow(self, joules: float, expected: Mapping[str, float]) -> bool:
        """Move the correction of every deployment that was there; False for an absurd window."""
        total = sum(expected.values())
        if is_absurd(joules, total):
            return False
        for deployment_id, part in expected.items():
            correction = self._corrections.setdefault(deployment_id, Correction())
            correction.follow(joules, total, share=part / total)
        return True

    def _finished(self, until: float) -> Iterator[MeasuredCall]:
        """The calls that ended before ``until``; no later window can add to them."""
        waiting = []
        for each in self._calls:
            if each.call.ended >= until:
                waiting.append(each)
            elif each.covered >= COVERED:
                yield MeasuredCall(each.call.call_id, each.call.deployment_id, each.joules)
            else:
                self._counters.add("energy_calls_not_measured")
        self._calls = waiting
