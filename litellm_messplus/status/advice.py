"""What an operator should do about a promise, in one phrase."""

from litellm_messplus.status.alerts import Alert, AlertKind
from litellm_messplus.status.interval import Verdict
from litellm_messplus.status.report import LevelStatus, Status

HELD = (Verdict.KEPT, Verdict.KEPT_WITHIN)
MOST = 0.5
"""The share of requests with a verdict from which on waiting is enough."""
NOTHING = "nothing to do"
FEEDBACK = (AlertKind.NO_FEEDBACK, AlertKind.THIN_EVIDENCE)
"""The alerts that ask for more verdicts."""


def advice(level: LevelStatus, status: Status) -> str:
    """Name the most urgent step, from the alerts and the verdict."""
    alerts = [each for each in status.alerts if _is_about(each, level)]
    kinds = {each.kind for each in alerts}
    if AlertKind.OUT_OF_REACH in kinds:
        return "to do: lower alpha, or add a model that satisfies more"
    is_past = kinds == {AlertKind.NOT_KEPT} and level.last.satisfaction.verdict in HELD
    if is_past:
        return f"{NOTHING}: the last {level.last.satisfaction.requests} requests kept it"
    if kinds.difference(FEEDBACK):
        return "to do: see the alerts below"
    if kinds or level.overall.satisfaction.verdict is Verdict.CANNOT_SAY:
        return _more_verdicts(level, status)
    return NOTHING


def _is_about(alert: Alert, level: LevelStatus) -> bool:
    """Say whether the alert is of this promise, of its zoo, or of all."""
    return alert.zoo in (None, level.zoo) and alert.service_level in (None, level.service_level)


def _more_verdicts(level: LevelStatus, status: Status) -> str:
    found = level.overall.satisfaction
    if not found.requests:
        return NOTHING
    if (level.last.satisfaction.answered_share or 0.0) >= MOST:
        return f"{NOTHING}: verdicts come, wait for more"
    if any(judge.zoo == level.zoo for judge in status.judges):
        return "to do: send more feedback, or let the judge grade more"
    return "to do: send feedback, or switch a judge on"
