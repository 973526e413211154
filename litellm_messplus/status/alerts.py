"""What an operator should know of without asking: pure rules, and a log of their comings and
goings."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

logger = logging.getLogger("litellm_messplus")

PATIENCE = 3
"""Looks in a row without an alert until it counts as over, so that a wavering one is told once."""


class AlertKind(StrEnum):
    """The kinds of alert, by their names in JSON and in the metrics."""

    FAILING = "failing"
    OUT_OF_REACH = "out_of_reach"
    BELOW = "below"
    NO_FEEDBACK = "no_feedback"
    THIN_EVIDENCE = "thin_evidence"
    JUDGE_STOPPED = "judge_stopped"
    KEY_HELD = "key_held"
    CANDIDATES = "candidates"
    RETURNED = "returned"
    BUDGET_BINDS = "budget_binds"
    OVER_BUDGET = "over_budget"
    TOO_LATE = "too_late"
    JOURNAL = "journal"
    GATES = "gates"
    UNSHARED = "unshared"


FAILURES = {
    AlertKind.JOURNAL: (
        "the log had failures",
        "database_awaited",
        "database_file_gone",
        "journal_failures",
        "records_dropped",
        "fold_failures",
    ),
    AlertKind.GATES: (
        "what models can take could not be found out, and the largest served",
        "gate_failures",
    ),
    AlertKind.UNSHARED: ("the file that workers share had failures", "lines_unshared"),
}
"""The words for what failed, and the counters of `GET /messplus/health` that say so."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing that is wrong; ``service_level`` is None where it is about a zoo, and ``zoo`` too
    where it is about all."""

    kind: AlertKind
    message: str
    zoo: str | None = None
    service_level: str | None = None

    @property
    def key(self) -> tuple[AlertKind, str | None, str | None]:
        """The fields that make it the same alert, though the numbers in its message change."""
        return self.kind, self.zoo, self.service_level

    @property
    def subject(self) -> str:
        """The zoo and service level that it is about, for people."""
        if self.zoo is None:
            return "messplus"
        return self.zoo if self.service_level is None else f"{self.zoo}/{self.service_level}"


def failure_alerts(counters: Mapping[str, int]) -> list[Alert]:
    """Report what had failures since the start, if any."""
    alerts = []
    for kind, (words, *names) in FAILURES.items():
        failed = [f"{name} {counters[name]}" for name in names if counters.get(name)]
        if failed:
            message = f"{words} since the proxy started: {', '.join(failed)}"
            alerts.append(Alert(kind, message))
    return alerts


class AlertLog:
    """The log of alerts, which tells each once when it comes, and once when it is over; one a
    worker process."""

    def __init__(self, patience: int = PATIENCE) -> None:
        self._patience = patience
        self._active: dict[tuple[AlertKind, str | None, str | None], Alert] = {}
        self._absent: dict[tuple[AlertKind, str | None, str | None], int] = {}

    def update(self, alerts: Iterable[Alert]) -> list[str]:
        """Log what is new and what is over, given all alerts of now; returns the lines."""
        now = {alert.key: alert for alert in alerts}
        lines = [self._raise(alert) for key, alert in now.items() if key not in self._active]
        self._active.update(now)
        for key in now:
            self._absent.pop(key, None)
        for key in [key for key in self._active if key not in now]:
            self._absent[key] = self._absent.get(key, 0) + 1
            if self._absent[key] >= self._patience:
                lines.append(self._recover(key))
        return lines

    def _raise(self, alert: Alert) -> str:
        line = f"alert {alert.kind} ({alert.subject}): {alert.message}"
        is_notice = alert.kind is AlertKind.THIN_EVIDENCE
        logger.log(logging.INFO if is_notice else logging.WARNING, "%s", line)
        return line

    def _recover(self, key: tuple[AlertKind, str | None, str | None]) -> str:
        alert = self._active.pop(key)
        del self._absent[key]
        line = f"alert {alert.kind} ({alert.subject}) is over"
        logger.info("%s", line)
        return line
