"""What of the figures needs attention: the alerts that keys, modes, candidates and service levels
raise."""

from collections.abc import Iterator, Mapping, Sequence

from litellm_messplus.figures.interval import ENOUGH_ANSWERED
from litellm_messplus.figures.words import percent, percent_range
from litellm_messplus.status.alerts import Alert, AlertKind
from litellm_messplus.status.limits import limit_alerts
from litellm_messplus.status.report import (
    KeyStatus,
    LevelStatus,
    LiveLevels,
    Satisfaction,
)
from litellm_messplus.store.zoo_modes import ModeRow


def key_alerts(keys: Sequence[KeyStatus]) -> list[Alert]:
    """Name, for each service level, the keys of which labels were held in the last day, by their
    hashes."""
    held: dict[tuple[str, str], list[str]] = {}
    for key in keys:
        if key.held:
            told = f"{key.key_hash or 'without a key'} ({key.held} of {key.verdicts} labels)"
            held.setdefault((key.zoo, key.service_level), []).append(told)
    return [
        Alert(AlertKind.KEY_HELD, f"keys said more than counts: {', '.join(told)}", zoo, level)
        for (zoo, level), told in held.items()
    ]


def mode_alerts(rows: Mapping[str, ModeRow]) -> list[Alert]:
    """Name the zoos that returned to what served before by themselves, until somebody acts."""
    return [
        Alert(AlertKind.RETURNED, f"returned to {row.before} by itself: {row.reason}", zoo)
        for zoo, row in sorted(rows.items())
        if row.is_returned
    ]


def level_alerts(level: LevelStatus) -> list[Alert]:
    """List the alerts of one service level, the gravest first."""
    limits = limit_alerts(level.limits, level.missed, level.last.satisfaction.judged)
    found = [*_out_of_reach(level), *_below(level), *limits, *_feedback(level)]
    return [Alert(kind, message, level.zoo, level.service_level) for kind, message in found]


def _out_of_reach(level: LevelStatus) -> Iterator[tuple[AlertKind, str]]:
    if not level.is_within_reach:
        yield (
            AlertKind.OUT_OF_REACH,
            f"no candidate can hold alpha {level.alpha:g}: the best value is served meanwhile",
        )


def _below(level: LevelStatus) -> Iterator[tuple[AlertKind, str]]:
    """Yield the alert of a share below its promise: by the newest requests where they are below,
    else by the whole time."""
    for window, span in ((level.last, "last"), (level.overall, "whole")):
        found = window.satisfaction
        if found.is_below:
            over = f"the last {found.requests} {found.unit}" if span == "last" else "the whole time"
            yield AlertKind.BELOW, f"below the promise over {over}: {_rate(found)}"
            return


def _feedback(level: LevelStatus) -> Iterator[tuple[AlertKind, str]]:
    """Yield alerts about feedback, once there were requests enough to expect some."""
    last, overall = level.last.satisfaction, level.overall.satisfaction
    if overall.requests < ENOUGH_ANSWERED:
        return
    if last.requests >= ENOUGH_ANSWERED and last.judged == 0:
        yield AlertKind.NO_FEEDBACK, f"no feedback: none of the last {last.requests} has a verdict"
    elif overall.is_thin:
        yield AlertKind.THIN_EVIDENCE, overall.evidence


def _rate(found: Satisfaction) -> str:
    return (
        f"{percent(found.rate)} satisfied ({percent_range(found.low, found.high)}) of "
        f"{found.judged} judged, promised {percent(found.promised)}"
    )


def candidate_alerts(live: LiveLevels) -> list[Alert]:
    """Report each zoo once whose candidates are not what they should be."""
    concerns = {zoo: each.concern for (zoo, _), each in sorted(live.items()) if each.concern}
    return [Alert(AlertKind.CANDIDATES, concern, zoo) for zoo, concern in concerns.items()]
