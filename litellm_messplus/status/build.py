"""The status of now, from the log and, in the proxy, from the engines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.figures.tally import Tally
from litellm_messplus.labels.response_bias import Audit
from litellm_messplus.status import queries
from litellm_messplus.status.alerts import failure_alerts
from litellm_messplus.status.as_before import as_before, read_traffic
from litellm_messplus.status.calibration import Prequential, ZooCalibration
from litellm_messplus.status.concerns import candidate_alerts, key_alerts, level_alerts, mode_alerts
from litellm_messplus.status.conversations import ConversationStatus, read_conversations
from litellm_messplus.status.failing import RecentRequests, failing_alerts, recent_requests
from litellm_messplus.status.incidents import KeyIncidents, read_incidents
from litellm_messplus.status.labels import (
    Grading,
    JudgeKey,
    Sources,
    all_sources,
    judge_alerts,
    judge_status,
    judging,
    labels_of,
    response_bias,
    sources,
)
from litellm_messplus.status.limits import LimitFigures, limits_status, read_limits
from litellm_messplus.status.queries import Key, Newest, Start, judged_calls
from litellm_messplus.status.report import (
    CandidateStatus,
    KeyStatus,
    LabelCostStatus,
    LevelStatus,
    LiveLevel,
    LiveLevels,
    Source,
    Status,
    WindowStatus,
)
from litellm_messplus.status.switches import read_switches
from litellm_messplus.status.windows import window_status
from litellm_messplus.store.audits import audits
from litellm_messplus.store.candidates import LoggedChange, newest_changes
from litellm_messplus.store.key_activity import KeyVerdicts, heaviest_keys
from litellm_messplus.store.reading import one_moment, reading
from litellm_messplus.store.spending import LabelCosts, label_costs
from litellm_messplus.store.zoo_modes import ModeRow, newest_of
from litellm_messplus.vocabulary import level_before, promise_of

WINDOW = 500
"""Requests of the last window, unless asked otherwise."""
HEAVIEST_KEYS = 10
"""Keys that are shown, those with the most labels."""


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
    audits: Mapping[Key, Audit] = field(default_factory=dict)
    judging: Mapping[JudgeKey, Grading] = field(default_factory=dict)
    calibration: Sequence[ZooCalibration] = ()
    keys: Sequence[KeyVerdicts] = ()
    label_costs: Mapping[str, LabelCosts] = field(default_factory=dict)
    changes: Sequence[LoggedChange] = ()
    modes: Mapping[str, ModeRow] = field(default_factory=dict)
    limits: Mapping[Key, LimitFigures] = field(default_factory=dict)
    conversations: Sequence[ConversationStatus] = ()
    incidents: Sequence[KeyIncidents] = ()
    recent: Mapping[str, RecentRequests] = field(default_factory=dict)
    traffic: Mapping[Key, float] = field(default_factory=dict)


async def read_status(
    database: AsyncEngine,
    window: int = WINDOW,
    live: LiveLevels | None = None,
    counters: Mapping[str, int] | None = None,
    *,
    with_calibration: bool = True,
) -> Status:
    """Ask the log, and put together what it says.

    With ``live``, only the levels in it are shown: those that are configured. ``counters`` are the
    plugin's own; without them nothing is said of the journal. The calibration and the forecasts
    take longer than all the rest, and neither alerts nor metrics need them.
    Raises ValueError for a window below 1, ReadingTakesTooLongError, and
    sqlalchemy.exc.SQLAlchemyError or OSError where the database does not answer.
    """
    if window < 1:
        raise ValueError(f"a window of {window} requests")
    rows = await _read(database, window, with_calibration)
    found = build_status(rows, window, live, counters)
    if not with_calibration:  # nor the forecast, which reads thousands of requests
        return found
    known = {level.zoo for level in found.levels}
    modes = {zoo: row for zoo, row in rows.modes.items() if zoo in known}
    return replace(found, switches=await read_switches(database, modes, rows.overall.totals.keys()))


async def _read(database: AsyncEngine, window: int, with_calibration: bool) -> Rows:
    now = datetime.now(UTC)
    today = now.date()
    async with database.connect() as connection, one_moment(connection):
        start = await queries.window_start(connection, window)
        return Rows(
            overall=await _overall(connection),
            last=await _last(connection, start),
            newest=await queries.newest(connection),
            out_of_reach=await queries.out_of_reach(connection),
            audits=await audits(connection),
            judging=await judging(connection),
            calibration=await _calibration(connection) if with_calibration else (),
            keys=await heaviest_keys(connection, HEAVIEST_KEYS),
            label_costs=await label_costs(connection, today, today - timedelta(days=1)),
            changes=await newest_changes(connection),
            modes=await newest_of(connection),
            limits=await read_limits(connection, start, now),
            conversations=await read_conversations(connection),
            incidents=await read_incidents(connection),
            recent=await recent_requests(connection, now),
            traffic=await read_traffic(connection, now),
        )


async def _overall(connection: AsyncConnection) -> Span:
    return Span(
        totals=await queries.totals(connection),
        sources=await all_sources(connection),
    )


async def _last(connection: AsyncConnection, start: Start) -> Span:
    return Span(
        totals=await queries.totals(connection, start),
        sources=await sources(connection, start),
    )


async def _calibration(connection: AsyncConnection) -> list[ZooCalibration]:
    prequential = Prequential()
    async for call in judged_calls(connection):
        prequential.add(call)
    return prequential.calibration()


def build_status(
    rows: Rows,
    window: int,
    live: LiveLevels | None = None,
    counters: Mapping[str, int] | None = None,
) -> Status:
    """Build the status that the rows make, with its alerts."""
    logged = {
        (zoo, promise_of(level)) for zoo, level in rows.newest.keys() | rows.overall.totals.keys()
    }
    known = logged if live is None else set(live)
    levels = [
        found
        for key in sorted(known)
        if (found := _level(key, rows, live.get(key) if live else None)) is not None
    ]
    zoos = {zoo for zoo, _ in known}
    least = {zoo: each.least_agreement for (zoo, _), each in (live or {}).items()}
    judges = tuple(
        judge_status(key, found, least.get(key[0]))
        for key, found in sorted(rows.judging.items())
        if key[0] in zoos
    )
    keys = tuple(_key(each) for each in rows.keys if (each.zoo, each.service_level) in known)
    alerts = [
        *failing_alerts(rows.recent, sorted(zoos)),
        *failure_alerts(counters or {}),
        *judge_alerts(rows.judging, judges),
        *key_alerts(keys),
        *candidate_alerts(live or {}),
        *mode_alerts({zoo: row for zoo, row in rows.modes.items() if zoo in zoos}),
        *(a for level in levels for a in level_alerts(level)),
    ]
    calibration = tuple(each for each in rows.calibration if each.zoo in zoos)
    costs = tuple(
        _label_costs(zoo, found) for zoo, found in sorted(rows.label_costs.items()) if zoo in zoos
    )
    changes = tuple(
        CandidateStatus(each.zoo, each.candidate, each.change, each.at)
        for each in rows.changes
        if each.zoo in zoos
    )
    return Status(
        window,
        tuple(levels),
        tuple(alerts),
        calibration,
        judges,
        keys,
        costs,
        changes,
        conversations=tuple(
            each for each in rows.conversations if (each.zoo, each.service_level) in known
        ),
        incidents=tuple(each for each in rows.incidents if each.zoo in zoos),
    )


def _label_costs(zoo: str, found: LabelCosts) -> LabelCostStatus:
    return LabelCostStatus(
        zoo=zoo,
        unseen=found.unseen,
        judging=found.judging,
        saved=found.saved,
        unseen_today=found.unseen_today,
        judging_today=found.judging_today,
    )


def _key(found: KeyVerdicts) -> KeyStatus:
    return KeyStatus(
        zoo=found.zoo,
        service_level=found.service_level,
        key_hash=found.key_hash,
        requests=found.requests,
        verdicts=found.verdicts,
        counting=found.counting,
        unsatisfied=None if found.satisfied is None else 1.0 - found.satisfied,
        held=found.not_counting,
    )


def _level(key: Key, rows: Rows, live: LiveLevel | None) -> LevelStatus | None:
    """Build the status of a level; None where neither the engine nor the log can say the alpha."""
    beside = key[0], level_before(key[1])
    newest = rows.newest.get(key)
    alpha = _alpha(key, rows, live, newest)
    if alpha is None:
        return None
    recent = rows.recent.get(key[0])
    is_failing = recent is not None and recent.is_failing
    overall = _window(key, rows.overall, alpha, is_failing)
    return LevelStatus(
        zoo=key[0],
        service_level=key[1],
        alpha=alpha,
        cost_unit=live.cost_unit if live else None,
        source=Source.ENGINE if live else Source.NEWEST_REQUEST,
        queue=live.queue if live else newest.queue if newest else None,
        price=_price(live, newest),
        is_within_reach=_is_within_reach(key, rows, live),
        overall=overall,
        last=_window(key, rows.last, alpha, is_failing),
        response_bias=response_bias(rows.audits.get(key), rows.overall.sources.get(key, ())),
        largest=newest.largest if newest else None,
        limits=limits_status(rows.limits.get(key)),
        requests_per_hour=rows.traffic.get(key, 0.0) + rows.traffic.get(beside, 0.0),
        as_before=as_before(key, rows.last.totals, rows.traffic),
    )


def _alpha(key: Key, rows: Rows, live: LiveLevel | None, newest: Newest | None) -> float | None:
    """Return alpha as configured, else of the newest request; where all are pruned, what their
    verdicts had."""
    if live and live.alpha is not None:
        return live.alpha
    if newest is not None:
        return newest.alpha
    beside = key[0], level_before(key[1])
    if beside in rows.newest:
        return rows.newest[beside].alpha
    totals = rows.overall.totals.get(key) or rows.overall.totals.get(beside)
    return None if totals is None else totals.promised


def _window(key: Key, span: Span, alpha: float, is_failing: bool) -> WindowStatus:
    totals = span.totals.get(key)
    labels = labels_of(span.sources.get(key, ()), totals)
    return window_status(totals, alpha, labels, is_failing=is_failing)


def _price(live: LiveLevel | None, newest: Newest | None) -> float | None:
    if live is not None and live.price is not None:
        return live.price
    return newest.price if newest else None


def _is_within_reach(key: Key, rows: Rows, live: LiveLevel | None) -> bool:
    if live is not None and live.is_within_reach is not None:
        return live.is_within_reach
    return key not in rows.out_of_reach


# Reading the status from a database that somebody else keeps.

DEFAULT_FILES = (Path("var/messplus.db"), Path("messplus.db"))
"""Where `make run` and a proxy without `messplus.database` keep theirs; the first is taken."""


def default_database() -> str:
    """Return the database of this folder, whether it is there or not."""
    return str(next((path for path in DEFAULT_FILES if path.is_file()), DEFAULT_FILES[-1]))


async def status_of(database: str, window: int = WINDOW) -> Status:
    """Read the status of the database at an SQLAlchemy URL, or of the SQLite one at a path.

    Raises UnreadableDatabaseError where there is none, or none of this version.
    """
    async with reading(database) as engine:
        return await read_status(engine, window)
