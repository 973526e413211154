"""The label source that runs every check of a zoo on every call."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextvars import Context

from litellm_messplus.counters import Counters
from litellm_messplus.label_kind import LabelKind
from litellm_messplus.labels.answered_call import AnsweredCall
from litellm_messplus.labels.checks.check import Check, CheckTimeoutError, Score
from litellm_messplus.labels.checks.sandbox import Sandbox
from litellm_messplus.labels.source import Finding, Report

WAITING = 256
"""Calls that one check may be at, or have before it; more are left out and counted. Each check has
its own, so that a slow one keeps no other from its work."""
CLOSE_SECONDS = 5.0


class Checks:
    """Reports a finding for each check that has something to say."""

    name = "checks"

    def __init__(
        self,
        checks: Sequence[Check],
        sandbox: Sandbox,
        report: Report,
        counters: Counters,
        *,
        weight: float,
    ) -> None:
        self._checks = tuple(checks)
        self._sandbox = sandbox
        self._report = report
        self._counters = counters
        self._weight = weight
        self._running: defaultdict[str, set[asyncio.Task[None]]] = defaultdict(set)

    def ended(self, call: AnsweredCall) -> None:
        """Begin every check; returns at once."""
        for check in self._checks:
            running = self._running[check.name]
            if len(running) >= WAITING:
                self._counters.add("checks_left_out")
                continue
            # A fresh context: a function of the operator's is no part of the user's request.
            task = Context().run(asyncio.create_task, self._run(check, call))
            running.add(task)
            task.add_done_callback(running.discard)

    async def close(self) -> None:
        """Wait for the checks under way, but not for ever."""
        under_way = [task for running in self._running.values() for task in running]
        if under_way:
            _, pending = await asyncio.wait(under_way, timeout=CLOSE_SECONDS)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
        await self._sandbox.close()

    async def _run(self, check: Check, call: AnsweredCall) -> None:
        try:
            score = await check.check(call)
            if score is not None:
                self._report(self._finding(check, call, score))
        except CheckTimeoutError:
            self._counters.failure("checks_timed_out", f"check {check.name} took too long")
        except Exception:
            self._counters.failure("check_failures", f"check {check.name} failed")

    def _finding(self, check: Check, call: AnsweredCall, score: Score) -> Finding:
        return Finding(
            call_id=call.call_id,
            request_id=call.asked.request_id,
            kind=LabelKind.CHECK,
            source=f"check:{check.name}",
            value=score.value,
            weight=self._weight,
            comment=score.reason,
        )
