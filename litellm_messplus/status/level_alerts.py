"""Which alerts a service level raises."""

from collections.abc import Iterator

from litellm_messplus.status.alerts import Alert, AlertKind
from litellm_messplus.status.interval import ENOUGH_ANSWERED, Verdict
from litellm_messplus.status.report import LevelStatus, Satisfaction


def level_alerts(level: LevelStatus) -> list[Alert]:
    """Those of one service level, the gravest first."""
    found = [*_out_of_reach(level), *_not_kept(level), *_feedback(level)]
    return [Alert(kind, message, level.zoo, level.service_level) for kind, message in found]


def _out_of_reach(level: LevelStatus) -> Iterator[tuple[AlertKind, str]]:
    if not level.is_within_reach:
        yield (
            AlertKind.OUT_OF_REACH,
            f"no candidate can hold alpha {level.alpha:g}: the best value is served meanwhile",
        )


def _not_kept(level: LevelStatus) -> Iterator[tuple[AlertKind, str]]:
    """Of the newest requests where they miss it, else of the whole time."""
    for window, span in ((level.last, "last"), (level.overall, "whole")):
        found = window.satisfaction
        if found.verdict is Verdict.NOT_KEPT:
            over = f"the last {found.requests} requests" if span == "last" else "the whole time"
            yield AlertKind.NOT_KEPT, f"the promise was not kept over {over}: {_rate(found)}"
            return


def _feedback(level: LevelStatus) -> Iterator[tuple[AlertKind, str]]:
    """Asked for once there were requests enough to expect some."""
    last, overall = level.last.satisfaction, level.overall.satisfaction
    if overall.requests < ENOUGH_ANSWERED:
        return
    if last.requests >= ENOUGH_ANSWERED and last.answered == 0:
        yield AlertKind.NO_FEEDBACK, f"no feedback: none of the last {last.requests} has a verdict"
    elif overall.is_thin:
        yield AlertKind.THIN_EVIDENCE, overall.evidence


def _rate(found: Satisfaction) -> str:
    return (
        f"{found.rate:.1%} satisfied ({found.low:.1%} to {found.high:.1%}) of {found.answered} "
        f"answered, promised {found.promised:.1%}"
    )
