"""Alerts for the operator, raised by pure rules from the figures, and a log of when they come and
go."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from litellm_messplus.figures.figure import Plain
from litellm_messplus.figures.interval import ENOUGH_ANSWERED, Standing
from litellm_messplus.figures.words import percent, percent_range
from litellm_messplus.runtime.counters import UNROUTED, logger
from litellm_messplus.runtime.vocabulary import SERVING
from litellm_messplus.status.figures import LiveLevels
from litellm_messplus.status.labels import Grading, JudgeKey
from litellm_messplus.status.reading import MINUTES, Endpoint, Recent
from litellm_messplus.store.model_changes import ModelChange
from litellm_messplus.store.zoo_modes import ModeRow


class AlertKind(StrEnum):
    """The kinds of alert, by their names in JSON and in the metrics."""

    SERVED_NOT_CHOSEN = "served_not_chosen"
    FAILING = "failing"
    OUT_OF_REACH = "out_of_reach"
    BELOW = "below"
    NO_FEEDBACK = "no_feedback"
    THIN_EVIDENCE = "thin_evidence"
    JUDGE_STOPPED = "judge_stopped"
    KEY_HELD = "key_held"
    CANDIDATES = "candidates"
    RETURNED = "returned"
    JOURNAL = "journal"
    GATES = "gates"
    HIDDEN = "hidden"
    BRAIN = "brain"
    MODEL_CHANGED = "model_changed"


def alert(
    kind: AlertKind,
    message: str,
    zoo: str | None = None,
    service_level: str | None = None,
    candidate: str | None = None,
) -> Plain:
    """Make one alert: ``service_level`` is None if it is about a zoo, and ``zoo`` too if it is
    about all; ``candidate`` is set if it is about one. `runbook` says what to type."""
    about = {"zoo": zoo, "service_level": service_level, "candidate": candidate}
    return {"kind": kind, "message": message, "runbook": f"docs/runbook.md#{kind}", **about}


def subject(found: Plain) -> str:
    """Name the zoo and service level that an alert is about, for people."""
    return "/".join(filter(None, (found["zoo"], found["service_level"]))) or "messplus"


PATIENCE = 3
"""Consecutive looks without an alert until it counts as over, so that a wavering one is logged
once."""

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
    AlertKind.HIDDEN: (
        "labels are few: LiteLLM hid the words of answers, which got none",
        "answers_hidden",
    ),
    AlertKind.BRAIN: (
        "workers were not answered by the brain, and requests served without a decision",
        "brain_away",
        "brain_starts_failed",
        "brain_unlike",
    ),
}
"""Descriptions of what failed, and the counters of `GET /messplus/health` that count it."""


RECENT_SECONDS = 600.0
"""Seconds after which a failure that has not come again is over."""
LASTING = {"records_dropped"}
"""Counters of what stays lost."""


def unfollowed_alerts(recent: Mapping[str, Recent]) -> Iterator[Plain]:
    """Name the zoos whose requests LiteLLM sends elsewhere than the router leaves them."""
    for zoo, found in sorted(recent.items()):
        if not found.is_followed:
            message = (
                f"LiteLLM does not follow the router: {found.not_chosen} of the {found.ended} "
                f"requests of the last {MINUTES} minutes were served by another model than chosen; "
                "no savings are shown. `messplus check` tells which LiteLLM can be used"
            )
            yield alert(AlertKind.SERVED_NOT_CHOSEN, message, zoo)


def failing_alerts(recent: Mapping[str, Recent]) -> Iterator[Plain]:
    """Name the zoos that fail more than a few of their requests now."""
    for zoo, found in sorted(recent.items()):
        if found.is_failing:
            by = ", ".join(
                f"{each.value.replace('_', ' ')} {found.failures[each]}"
                for each in SERVING
                if each in found.failures
            )
            message = (
                f"{found.failed} of the {found.ended} requests of the last {MINUTES} minutes "
                f"failed ({percent(found.failed / found.ended)}): {by}"
            )
            yield alert(AlertKind.FAILING, message, zoo)


def endpoint_alerts(failing: Iterable[Endpoint]) -> Iterator[Plain]:
    """Name the endpoints that fail all that they are sent."""
    for zoo, candidate, identity, failed in failing:
        message = f"{candidate} fails: its endpoint {identity} failed the last {failed} calls"
        yield alert(AlertKind.FAILING, message, zoo, candidate=candidate)


def failure_alerts(counters: Mapping[str, int]) -> list[Plain]:
    """Report what has failed since the start, if anything."""
    alerts = []
    for kind, (words, *names) in FAILURES.items():
        failed = [f"{name} {counters[name]}" for name in names if counters.get(name)]
        if failed:
            message = f"{words}, by count since the start: {', '.join(failed)}"
            alerts.append(alert(kind, message))
    return alerts


def unrouted_of(counts: Mapping[str, float]) -> list[Plain]:
    """Read from the counts of all workers how many answers each zoo's models gave to calls of a
    type that is not routed, since the oldest running worker began."""
    names = sorted(name for name in counts if name.startswith(UNROUTED) and counts[name])
    found = [(*name.removeprefix(UNROUTED).rpartition("."), int(counts[name])) for name in names]
    return [{"zoo": zoo, "call_type": kind, "answers": count} for zoo, _, kind, count in found]


class RecentFailures:
    """The counts of failures that are still to be acted on: lost records, and those that rose in
    the last minutes, as one process has seen it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._risen: dict[str, tuple[int, float]] = {}
        """The last count by name, and when it rose to that."""

    def of(self, counters: Mapping[str, int]) -> dict[str, int]:
        """Note the counters as they are now, and return those that are to be acted on."""
        now = self._clock()
        for name, count in counters.items():
            known, at = self._risen.get(name, (0, now))
            self._risen[name] = count, now if count > known else at
        recent = {name for name, (_, at) in self._risen.items() if now - at < RECENT_SECONDS}
        return {n: count for n, count in counters.items() if n in recent or n in LASTING}


def judge_alerts(found: Mapping[JudgeKey, Grading], judges: Sequence[Plain]) -> list[Plain]:
    """List the judges whose labels have stopped counting: they agree too little with users, or
    prefer an answer for its place."""
    return [
        alert(AlertKind.JUDGE_STOPPED, f"the judge {each['judge']} {each['note']}", each["zoo"])
        for each in judges
        if found[each["zoo"], each["judge"]].weight == 0.0
    ]


def key_alerts(keys: Sequence[Plain]) -> list[Plain]:
    """Report, for each service level, the hashes of the keys with labels held in the last day."""
    held: dict[tuple[str, str], list[str]] = {}
    for key in keys:
        if key["held"]:
            whose = key["key_hash"] or "without a key"
            text = f"{whose} ({key['held']} of {key['verdicts']} labels)"
            held.setdefault((key["zoo"], key["service_level"]), []).append(text)
    return [
        alert(AlertKind.KEY_HELD, f"keys said more than counts: {', '.join(texts)}", zoo, level)
        for (zoo, level), texts in held.items()
    ]


def mode_alerts(rows: Mapping[str, ModeRow]) -> list[Plain]:
    """Name the zoos that returned to what served before by themselves, until an operator acts."""
    return [
        alert(AlertKind.RETURNED, f"returned to {row.before} by itself: {row.reason}", zoo)
        for zoo, row in sorted(rows.items())
        if row.is_returned
    ]


def level_alerts(level: Plain) -> list[Plain]:
    """List the alerts of one service level, the gravest first."""
    found = [*_out_of_reach(level), *_below(level), *_feedback(level)]
    return [alert(kind, text, level["zoo"], level["service_level"]) for kind, text in found]


def _out_of_reach(level: Plain) -> Iterator[tuple[AlertKind, str]]:
    """Yield the alert of an alpha that no candidate holds; while most fail, few can serve."""
    is_failing = level["overall"]["satisfaction"]["verdict"] == Standing.FAILING
    if not level["is_within_reach"] and not is_failing:
        yield (
            AlertKind.OUT_OF_REACH,
            f"no candidate can hold alpha {level['alpha']:g}: the best value is served meanwhile",
        )


def _below(level: Plain) -> Iterator[tuple[AlertKind, str]]:
    """Yield the alert of a share below its promise: by the newest requests if they are below, else
    by the whole time."""
    for span in ("last", "overall"):
        found = level[span]["satisfaction"]
        if found["high"] is not None and found["high"] < found["promised"]:
            over = f"the last {found['requests']} requests" if span == "last" else "the whole time"
            yield (
                AlertKind.BELOW,
                (
                    f"below the promise over {over}: {percent(found['rate'])} satisfied "
                    f"({percent_range(found['low'], found['high'])}) of {found['judged']} judged, "
                    f"promised {percent(found['promised'])}"
                ),
            )
            return


def _feedback(level: Plain) -> Iterator[tuple[AlertKind, str]]:
    """Yield alerts about feedback, once there were enough requests to expect some."""
    last, overall = level["last"]["satisfaction"], level["overall"]["satisfaction"]
    if overall["requests"] < ENOUGH_ANSWERED:
        return
    if last["requests"] >= ENOUGH_ANSWERED and last["judged"] == 0:
        missing = f"no feedback: none of the last {last['requests']} has a verdict"
        yield AlertKind.NO_FEEDBACK, missing
    elif overall["is_thin"]:
        yield AlertKind.THIN_EVIDENCE, overall["evidence"]


def candidate_alerts(live: LiveLevels) -> list[Plain]:
    """Report each zoo once if its candidates are not as they should be."""
    concerns = {zoo: each.concern for (zoo, _), each in sorted(live.items()) if each.concern}
    return [alert(AlertKind.CANDIDATES, concern, zoo) for zoo, concern in concerns.items()]


def change_alerts(changes: Sequence[ModelChange]) -> list[Plain]:
    """Report each model that was found to have become worse: since when, by how much."""
    return [
        alert(AlertKind.MODEL_CHANGED, each.words, each.zoo, candidate=each.candidate)
        for each in changes
        if each.is_fall
    ]


class AlertLog:
    """The log of alerts, of one worker process: each is logged once when it comes and once when it
    is over."""

    def __init__(self, patience: int = PATIENCE) -> None:
        self._patience = patience
        self._active: dict[tuple[Any, ...], tuple[Plain, int]] = {}
        """The logged alerts by what makes each the same though the numbers in its message change,
        and the consecutive looks without each."""

    def update(self, alerts: Iterable[Plain]) -> list[str]:
        """Log which of the current alerts are new and which are over; return the lines."""
        now = {tuple(v for name, v in each.items() if name != "message"): each for each in alerts}
        lines = [self._raise(each) for key, each in now.items() if key not in self._active]
        self._active.update({key: (each, 0) for key, each in now.items()})
        for key in [key for key in self._active if key not in now]:
            each, absent = self._active[key]
            self._active[key] = each, absent + 1
            if absent + 1 >= self._patience:
                del self._active[key]
                lines.append(self._recover(each))
        return lines

    def _raise(self, found: Plain) -> str:
        line = f"alert {found['kind']} ({subject(found)}): {found['message']} ({found['runbook']})"
        is_notice = found["kind"] == AlertKind.THIN_EVIDENCE
        logger.log(logging.INFO if is_notice else logging.WARNING, "%s", line)
        return line

    def _recover(self, found: Plain) -> str:
        whose = ", ".join(filter(None, (subject(found), found["candidate"])))
        line = f"alert {found['kind']} ({whose}) is over"
        logger.info("%s", line)
        return line
