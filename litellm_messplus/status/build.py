"""The current status, from the log and, in the proxy, from the engines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.figures.interval import Standing, is_thin, standing
from litellm_messplus.figures.tally import Tally, share, taken
from litellm_messplus.runtime.vocabulary import level_before, promise_of
from litellm_messplus.status import reading as ask
from litellm_messplus.status.alerts import (
    candidate_alerts,
    change_alerts,
    endpoint_alerts,
    failing_alerts,
    failure_alerts,
    judge_alerts,
    key_alerts,
    level_alerts,
    mode_alerts,
    unfollowed_alerts,
)
from litellm_messplus.status.calibration import Prequential, ZooCalibration
from litellm_messplus.status.labels import (
    Grading,
    JudgeKey,
    Sources,
    all_sources,
    judge_status,
    judging,
    labels_of,
    sources,
)
from litellm_messplus.status.newest import (
    ConversationStatus,
    KeyIncidents,
    read_conversations,
    read_incidents,
)
from litellm_messplus.status.reading import Key, Newest, Recent
from litellm_messplus.status.report import (
    Answers,
    AsBefore,
    Cost,
    Exploration,
    LabelCostStatus,
    LevelStatus,
    LiveLevel,
    LiveLevels,
    Overhead,
    Satisfaction,
    Savings,
    Source,
    Status,
    WindowStatus,
)
from litellm_messplus.status.switches import read_switches
from litellm_messplus.store.history import CandidateStatus, newest_changes
from litellm_messplus.store.judging import LabelCosts, label_costs
from litellm_messplus.store.key_activity import KeyStatus, heaviest_keys
from litellm_messplus.store.model_changes import ModelChange, logged_changes
from litellm_messplus.store.reading import one_moment, reading
from litellm_messplus.store.zoo_modes import ModeRow, newest_of

WINDOW = 500
"""Default number of requests of the last window."""
HEAVIEST_KEYS = 10
"""Most keys that are shown, those with the most labels."""


@dataclass(frozen=True, slots=True)
class Span:
    """The figures of the log over all requests, or over the newest, by zoo and service level."""

    totals: Mapping[Key, Tally] = field(default_factory=dict)
    sources: Mapping[Key, Sources] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rows:
    """The figures of the log, by zoo and service level; ``judging`` by zoo and judge."""

    overall: Span = field(default_factory=Span)
    last: Span = field(default_factory=Span)
    newest: Mapping[Key, Newest] = field(default_factory=dict)
    out_of_reach: set[Key] = field(default_factory=set)
    judging: Mapping[JudgeKey, Grading] = field(default_factory=dict)
    calibration: Sequence[ZooCalibration] = ()
    keys: Sequence[KeyStatus] = ()
    label_costs: Mapping[str, LabelCosts] = field(default_factory=dict)
    changes: Sequence[CandidateStatus] = ()
    modes: Mapping[str, ModeRow] = field(default_factory=dict)
    conversations: Sequence[ConversationStatus] = ()
    incidents: Sequence[KeyIncidents] = ()
    recent: Mapping[Key, Recent] = field(default_factory=dict)
    failing: Sequence[ask.Endpoint] = ()
    model_changes: Sequence[ModelChange] = ()


async def read_status(
    database: AsyncEngine,
    window: int = WINDOW,
    live: LiveLevels | None = None,
    counters: Mapping[str, int] | None = None,
    *,
    with_calibration: bool = True,
) -> Status:
    """Query the log and build the status.

    With ``live``, only its levels are shown: the configured ones. ``counters`` are the plugin's
    own; without them the journal is not reported. The calibration and the forecasts take longer
    than all the rest, and neither alerts nor metrics need them.
    Raises ValueError for a window below 1, ReadingTakesTooLongError, and
    sqlalchemy.exc.SQLAlchemyError or OSError if the database does not answer.
    """
    if window < 1:
        raise ValueError(f"a window of {window} requests")
    async with database.connect() as connection, one_moment(connection):
        rows = await _read(connection, window, with_calibration, with_snapshots=live is None)
    found = build_status(rows, window, live, counters)
    if not with_calibration:  # nor the forecast, which reads thousands of requests
        return found
    known = {level.zoo for level in found.levels}
    modes = {zoo: row for zoo, row in rows.modes.items() if zoo in known}
    return replace(found, switches=await read_switches(database, modes, rows.overall.totals.keys()))


async def _read(
    connection: AsyncConnection, window: int, with_calibration: bool, *, with_snapshots: bool
) -> Rows:
    now = datetime.now(UTC)
    start = await ask.window_start(connection, window)
    return Rows(
        overall=Span(await ask.totals(connection), await all_sources(connection)),
        last=Span(await ask.totals(connection, start), await sources(connection, start)),
        newest=await ask.newest(connection),
        out_of_reach=await ask.out_of_reach(connection),
        judging=await judging(connection),
        calibration=await read_calibration(connection) if with_calibration else (),
        keys=await heaviest_keys(connection, HEAVIEST_KEYS),
        label_costs=await label_costs(connection, now.date(), now.date() - timedelta(days=1)),
        changes=await newest_changes(connection),
        modes=await newest_of(connection),
        conversations=await read_conversations(connection),
        incidents=await read_incidents(connection),
        recent=await ask.recent_requests(connection, now),
        failing=await ask.failing_endpoints(connection, now),
        model_changes=[each for each in await logged_changes(connection) if each.is_new(now)]
        if with_snapshots
        else (),
    )


async def read_calibration(connection: AsyncConnection) -> list[ZooCalibration]:
    """Compare the newest predictions with their verdicts, by zoo."""
    prequential = Prequential()
    async for call in ask.judged_calls(connection):
        prequential.add(call)
    return prequential.calibration()


def build_status(
    rows: Rows,
    window: int,
    live: LiveLevels | None = None,
    counters: Mapping[str, int] | None = None,
) -> Status:
    """Build the status from the rows, with its alerts."""
    logged = {
        (zoo, promise_of(level)) for zoo, level in rows.newest.keys() | rows.overall.totals.keys()
    }
    known = logged if live is None else set(live)
    zoos = {zoo for zoo, _ in known}
    recent: dict[str, Recent] = {}
    for (zoo, _), each in rows.recent.items():
        if zoo in zoos:
            recent[zoo] = recent.get(zoo, Recent()) + each
    levels = [
        found
        for key in sorted(known)
        if (found := _level(key, rows, live.get(key) if live else None, recent)) is not None
    ]
    least = {zoo: each.least_agreement for (zoo, _), each in (live or {}).items()}
    judges = tuple(
        judge_status(key, found, least.get(key[0]))
        for key, found in sorted(rows.judging.items())
        if key[0] in zoos
    )
    keys = tuple(each for each in rows.keys if (each.zoo, each.service_level) in known)
    changed = _model_changes(rows, live)
    alerts = [
        *unfollowed_alerts(recent),
        *failing_alerts(recent),
        *endpoint_alerts(each for each in rows.failing if each[0] in zoos),
        *failure_alerts(counters or {}),
        *judge_alerts(rows.judging, judges),
        *key_alerts(keys),
        *candidate_alerts(live or {}),
        *change_alerts(changed),
        *mode_alerts({zoo: row for zoo, row in rows.modes.items() if zoo in zoos}),
        *(a for level in levels for a in level_alerts(level)),
    ]
    return Status(
        window,
        tuple(levels),
        tuple(alerts),
        tuple(each for each in rows.calibration if each.zoo in zoos),
        judges,
        keys,
        tuple(
            taken(LabelCostStatus, found, zoo=zoo)
            for zoo, found in sorted(rows.label_costs.items())
            if zoo in zoos
        ),
        tuple(each for each in rows.changes if each.zoo in zoos),
        conversations=tuple(
            each for each in rows.conversations if (each.zoo, each.service_level) in known
        ),
        incidents=tuple(each for each in rows.incidents if each.zoo in zoos),
        model_changes=changed,
    )


def _model_changes(rows: Rows, live: LiveLevels | None) -> tuple[ModelChange, ...]:
    """Return the new changes of models as the engines see them, else those of the snapshots."""
    if live is None:
        return tuple(rows.model_changes)
    by_zoo = {zoo: level.changes for (zoo, _), level in sorted(live.items())}
    return tuple(each for changes in by_zoo.values() for each in changes)


def _level(
    key: Key, rows: Rows, live: LiveLevel | None, recent: Mapping[str, Recent]
) -> LevelStatus | None:
    """Build the status of a level; None if neither the engine nor the log knows alpha. ``recent``
    holds the requests of each zoo in the last minutes."""
    before = key[0], level_before(key[1])
    newest = rows.newest.get(key)
    alpha = _alpha(key, before, rows, live)
    if alpha is None:
        return None
    now = recent.get(key[0], Recent())
    overall, last = (
        _window(span.totals.get(key), span.sources.get(key, ()), alpha, now)
        for span in (rows.overall, rows.last)
    )
    is_within_reach = live.is_within_reach if live else None
    price = live.price if live else None
    rate = {stream: rows.recent.get(stream, Recent()).per_hour for stream in (key, before)}
    return LevelStatus(
        zoo=key[0],
        service_level=key[1],
        alpha=alpha,
        cost_unit=live.cost_unit if live else None,
        source=Source.ENGINE if live else Source.NEWEST_REQUEST,
        queue=live.queue if live else newest.queue if newest else None,
        price=newest.price if price is None and newest else price,
        is_within_reach=key not in rows.out_of_reach
        if is_within_reach is None
        else is_within_reach,
        overall=overall,
        last=last,
        largest=newest.largest if newest else None,
        requests_per_hour=sum(rate.values()),
        as_before=_as_before(rows.last.totals.get(before), rate[before]),
    )


def _alpha(key: Key, before: Key, rows: Rows, live: LiveLevel | None) -> float | None:
    """Return alpha as configured, else of the newest request; if all are pruned, of their
    verdicts."""
    if live and live.alpha is not None:
        return live.alpha
    newest = rows.newest.get(key) or rows.newest.get(before)
    if newest is not None:
        return newest.alpha
    totals = rows.overall.totals.get(key) or rows.overall.totals.get(before)
    return None if totals is None else totals.promised


def _as_before(tally: Tally | None, per_hour: float) -> AsBefore | None:
    """Build the figures of the newest requests served as before; None if there are none."""
    if tally is None:
        return None
    return taken(
        AsBefore,
        tally,
        requests_per_hour=per_hour,
        cost_per_request=tally.seen_cost_per_request,
    )


# Sums of requests into the status of a window: satisfaction and cost.


def _window(found: Tally | None, given: Sources, alpha: float, now: Recent) -> WindowStatus:
    """Build the figures of the summed requests, if any; ``alpha`` is the current one, and ``now``
    holds the zoo's requests of the last minutes. No savings are shown while LiteLLM does not follow
    the router."""
    tally = found or Tally()
    has_cost = tally.priced or tally.cost > 0.0
    return WindowStatus(
        taken(Answers, tally, answered=tally.succeeded),
        _satisfaction(tally, alpha, now.is_failing),
        labels_of(given, tally),
        Cost(tally.cost if has_cost else None, tally.cost_per_request, tally.unstated),
        Exploration(
            requests=tally.explorations,
            share=share(tally.explorations, tally.requests),
            cost=tally.exploration_cost,
            cost_share=share(tally.exploration_cost, tally.cost),
        ),
        taken(Savings, tally, requests=tally.compared, cost_largest=tally.compared_cost_largest)
        if tally.compared and now.is_followed
        else None,
        _overhead(tally),
    )


def _satisfaction(tally: Tally, alpha: float, is_failing: bool) -> Satisfaction:
    promised = tally.promised if tally.promised is not None and tally.judged else alpha
    return taken(
        Satisfaction,
        tally,
        judged_share=share(tally.judged, tally.requests),
        promised=promised,
        verdict=Standing.FAILING if is_failing else standing(tally.interval, promised),
        is_thin=is_thin(tally.interval, tally.effective),
        evidence=_evidence(tally),
    )


def _evidence(tally: Tally) -> str:
    """Describe in words how much evidence the figures have."""
    if tally.requests == 0:
        return "no requests yet"
    found = f"{tally.judged} of {tally.requests} requests with a verdict"
    if round(tally.effective) < tally.judged:
        found += f", worth {tally.effective:.0f}"
    interval = tally.interval
    if not is_thin(interval, tally.effective):
        return found
    width = f", interval {100 * interval.width:.0f} points wide" if interval else ""
    return f"not enough evidence: {found}{width}"


def _overhead(tally: Tally) -> Overhead | None:
    """Return the mean seconds of predicting and deciding, and of the calls themselves."""
    timed = tally.timed
    if timed == 0:
        return None
    predicting, call = tally.predicting_seconds / timed, tally.call_seconds / timed
    # Both are measured by one clock, but rounded.
    deciding = max(tally.deciding_seconds / timed, 0.0)
    whole = predicting + deciding + call or 1.0
    return Overhead(
        timed, tally.late, predicting, deciding, call,
        predicting / whole, deciding / whole, call / whole,
    )  # fmt: skip


# Reading the status from another process's database.

DEFAULT_FILES = (Path("var/messplus.db"), Path("messplus.db"))
"""Paths of `make run` and of a proxy without `messplus.database`; the first existing one counts."""


def default_database() -> str:
    """Return the path of this folder's database, whether it exists or not."""
    return str(next((path for path in DEFAULT_FILES if path.is_file()), DEFAULT_FILES[-1]))


async def status_of(database: str, window: int = WINDOW) -> Status:
    """Read the status of the database at an SQLAlchemy URL, or of the SQLite one at a path.

    Raises UnreadableDatabaseError if there is none, or none of this version.
    """
    async with reading(database) as engine:
        return await read_status(engine, window)
