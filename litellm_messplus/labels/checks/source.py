"""The label sources that need neither user nor judge: the checks of a zoo, and failed requests."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Any

from litellm_messplus.labels.checks.check import (
    CallableCheck,
    Check,
    CheckTimeoutError,
    Score,
)
from litellm_messplus.labels.checks.shipped import CompleteCheck, JsonSchemaCheck, ReferenceCheck
from litellm_messplus.labels.source import AnsweredCall, Finding, ReportFinding
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.loading import load_attribute
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.settings.labels import ChecksSettings

WAITING = 256
"""Most calls in progress or waiting per check; further ones are left out and counted. Each check
has its own limit, so that a slow one does not hold up the others."""
CLOSE_SECONDS = 5.0


@dataclass(eq=False, repr=False)
class Checks:
    """A label source that reports a finding for each check that gives a score."""

    name = "checks"

    checks: Sequence[Check]
    report: ReportFinding
    counters: Counters

    def __post_init__(self) -> None:
        self._running: defaultdict[str, Tasks] = defaultdict(lambda: Tasks(WAITING))

    def ended(self, call: AnsweredCall) -> None:
        """Start every check; returns at once."""
        for check in self.checks:
            running, run = self._running[check.name], self._run(check, call)
            # A fresh context: the operator's function is not part of the user's request.
            if Context().run(running.start, run, check.name) is None:
                self.counters.add("checks_left_out")

    async def close(self) -> None:
        """Wait for the checks in progress, at most `CLOSE_SECONDS`."""
        closing = (running.close(CLOSE_SECONDS) for running in self._running.values())
        await asyncio.gather(*closing)

    async def least(self, call: AnsweredCall) -> float | None:
        """Return the worst that the checks say of an answer, from -1 to 1; None if none can tell.
        Raises their errors."""
        found = [await check.check(call) for check in self.checks]
        values = [score.value for score in found if score is not None]
        return 2.0 * min(values) - 1.0 if values else None

    async def _run(self, check: Check, call: AnsweredCall) -> None:
        try:
            score = await check.check(call)
            if score is not None:
                self.report(_finding(call, f"check:{check.name}", score))
        except CheckTimeoutError:
            self.counters.failure("checks_timed_out", f"check {check.name} took too long")
        except Exception:
            self.counters.failure("check_failures", f"check {check.name} failed")


def _finding(call: AnsweredCall, source: str, score: Score) -> Finding:
    return Finding(
        call_id=call.call_id,
        request_id=call.request.request_id,
        kind=LabelKind.CHECK,
        source=source,
        value=score.value,
        weight=1.0,
        comment=score.reason,
        cause=call.request.cause,
    )


# Building the checks of a zoo from its settings.

BUILT_IN = (CompleteCheck.name, JsonSchemaCheck.name, ReferenceCheck.name)
"""Names that a function of the operator must not have."""


def build_checks(
    settings: ChecksSettings, zoo: str, report: ReportFinding, counters: Counters
) -> Checks | None:
    """Build the enabled checks of a zoo; None without any.

    Raises ConfigurationError for a callable that cannot be imported.
    """
    checks = list(_checks(settings, zoo))
    return Checks(checks, report, counters) if checks else None


def _checks(settings: ChecksSettings, zoo: str) -> Iterator[Check]:
    if settings.complete:
        yield CompleteCheck()
    if settings.json_schema:
        yield JsonSchemaCheck()
    if settings.reference:
        yield ReferenceCheck()
    for name, path in settings.callables.items():
        key = f"messplus.zoos.{zoo}.labels.checks.callables.{name}"
        if name in BUILT_IN:
            allowed = f"a name other than {', '.join(BUILT_IN)}, which are checks of our own"
            raise ConfigurationError(key, name, allowed)
        yield CallableCheck(name, load_function(key, path))


def load_function(key: str, path: str) -> Callable[..., Any]:
    """Load a function of the operator. Raises ConfigurationError, with the key of the setting."""
    allowed = "package.module:function of a function that can be imported and called"
    try:
        function = load_attribute(path)
    except Exception as error:  # third-party code may raise anything
        raise ConfigurationError(key, path, f"{allowed} ({error!r})") from error
    if not callable(function):
        kind = type(function).__name__
        raise ConfigurationError(key, path, f"{allowed} (this is of type {kind})")
    found: Callable[..., Any] = function
    return found
