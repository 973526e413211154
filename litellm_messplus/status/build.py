"""The current status, from the log and, in the proxy, from the engines: plain, as in its JSON."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic_core import to_jsonable_python
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.figures.figure import Plain, part
from litellm_messplus.figures.tally import Tally
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
from litellm_messplus.status.calibration import Prequential
from litellm_messplus.status.figures import (
    JUDGE,
    KEY,
    LABEL_COSTS,
    LEVEL,
    WINDOW,
    Level,
    LiveLevel,
    LiveLevels,
    Source,
    Window,
)
from litellm_messplus.status.labels import (
    Grading,
    JudgeKey,
    Sources,
    all_sources,
    judging,
    note,
    sources,
)
from litellm_messplus.status.newest import read_conversations, read_incidents
from litellm_messplus.status.reading import Key, Newest, Recent
from litellm_messplus.status.switches import read_switches
from litellm_messplus.store.history import CandidateStatus, newest_changes
from litellm_messplus.store.judging import LabelCosts, label_costs
from litellm_messplus.store.key_activity import KeyStatus, heaviest_keys
from litellm_messplus.store.model_changes import ModelChange, logged_changes
from litellm_messplus.store.reading import one_moment, reading
from litellm_messplus.store.zoo_modes import ModeRow, newest_of

LAST = 500
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
    calibration: Sequence[Plain] = ()
    keys: Sequence[KeyStatus] = ()
    label_costs: Mapping[str, LabelCosts] = field(default_factory=dict)
    changes: Sequence[CandidateStatus] = ()
    modes: Mapping[str, ModeRow] = field(default_factory=dict)
    conversations: Sequence[Plain] = ()
    incidents: Sequence[Plain] = ()
    recent: Mapping[Key, Recent] = field(default_factory=dict)
    failing: Sequence[ask.Endpoint] = ()
    model_changes: Sequence[ModelChange] = ()


async def read_status(
    database: AsyncEngine,
    window: int = LAST,
    live: LiveLevels | None = None,
    counters: Mapping[str, int] | None = None,
    *,
    with_calibration: bool = True,
) -> Plain:
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
    known = {level["zoo"] for level in found["levels"]}
    modes = {zoo: row for zoo, row in rows.modes.items() if zoo in known}
    switches = await read_switches(database, modes, rows.overall.totals.keys())
    return found | {"switches": to_jsonable_python(switches)}


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


async def read_calibration(connection: AsyncConnection) -> list[Plain]:
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
) -> Plain:
    """Build the status from the rows, with its alerts: of the promises that are known, and of their
    zoos."""
    logged = {
        (zoo, promise_of(level)) for zoo, level in rows.newest.keys() | rows.overall.totals.keys()
    }
    known = logged if live is None else set(live)
    recent: defaultdict[str, Recent] = defaultdict(Recent)
    for (zoo, _), ended in rows.recent.items():
        recent[zoo] += ended
    levels = (_level(key, rows, (live or {}).get(key), recent[key[0]]) for key in sorted(known))
    least = {zoo: each.least_agreement for (zoo, _), each in (live or {}).items()}
    changed = rows.model_changes
    if live is not None:  # as the engines see them
        by_zoo = {zoo: level.changes for (zoo, _), level in sorted(live.items())}
        changed = [each for changes in by_zoo.values() for each in changes]
    found: Plain = {
        "levels": [level for level in levels if level is not None],
        "alerts": [],
        "calibration": rows.calibration,
        "judges": [
            part(JUDGE, each, zoo=zoo, judge=judge, note=note(each, least.get(zoo)))
            for (zoo, judge), each in sorted(rows.judging.items())
        ],
        "keys": [part(KEY, each) for each in rows.keys],
        "label_costs": [
            part(LABEL_COSTS, each, zoo=zoo) for zoo, each in sorted(rows.label_costs.items())
        ],
        "candidates": rows.changes,
        "switches": [],
        "conversations": rows.conversations,
        "incidents": rows.incidents,
        "model_changes": changed,
        "unrouted": [],
    }
    found["alerts"] = [
        *unfollowed_alerts(recent),
        *failing_alerts(recent),
        *endpoint_alerts(rows.failing),
        *failure_alerts(counters or {}),
        *judge_alerts(rows.judging, found["judges"]),
        *key_alerts(found["keys"]),
        *candidate_alerts(live or {}),
        *change_alerts(changed),
        *mode_alerts(rows.modes),
        *(alert for level in found["levels"] for alert in level_alerts(level)),
    ]
    own = known | {(zoo, None) for zoo, _ in known} | {(None, None)}
    return {"window": window} | {
        name: [each for each in parts if (each["zoo"], each.get("service_level")) in own]
        for name, parts in to_jsonable_python(found).items()
    }


def _level(key: Key, rows: Rows, live: LiveLevel | None, recent: Recent) -> Plain | None:
    """Build the status of a level; None if neither the engine nor the log knows alpha. ``recent``
    holds the requests of its zoo in the last minutes."""
    before = key[0], level_before(key[1])
    newest, now = rows.newest.get(key), _now(key, before, rows, live)
    if now.alpha is None:
        return None
    of_before = rows.recent.get(before, Recent()).per_hour
    level = Level(
        key,
        now,
        Source.ENGINE if live else Source.NEWEST_REQUEST,
        newest.largest if newest else None,
        rows.recent.get(key, Recent()).per_hour + of_before,
        rows.last.totals.get(before, Tally()),
        of_before,
    )
    windows = {
        name: Window(
            **asdict(span.totals.get(key, Tally())),
            now=now.alpha,
            sources=span.sources.get(key, ()),
            is_failing=recent.is_failing,
            is_followed=recent.is_followed,
        )
        for name, span in (("overall", rows.overall), ("last", rows.last))
    }
    return part(LEVEL, level) | {name: part(WINDOW, each) for name, each in windows.items()}


def _now(key: Key, before: Key, rows: Rows, live: LiveLevel | None) -> LiveLevel:
    """Return a promise as its engine sees it, and what that does not know from the log: alpha is
    that of the newest request or, if all are pruned, of their verdicts."""
    newest = rows.newest.get(key)
    named = newest or rows.newest.get(before)
    totals = rows.overall.totals.get(key) or rows.overall.totals.get(before)
    logged = LiveLevel(
        newest.queue if newest else None,
        newest.price if newest else None,
        key not in rows.out_of_reach,
        named.alpha if named else totals.promised if totals else None,
    )
    if live is None:
        return logged
    unknown = [
        name for name in ("price", "is_within_reach", "alpha") if getattr(live, name) is None
    ]
    return replace(live, **{name: getattr(logged, name) for name in unknown})


# Reading the status from another process's database.

DEFAULT_FILES = (Path("var/messplus.db"), Path("messplus.db"))
"""Paths of `make run` and of a proxy without `messplus.database`; the first existing one counts."""


def default_database() -> str:
    """Return the path of this folder's database, whether it exists or not."""
    return str(next((path for path in DEFAULT_FILES if path.is_file()), DEFAULT_FILES[-1]))


async def status_of(database: str, window: int = LAST) -> Plain:
    """Read the status of the database at an SQLAlchemy URL, or of the SQLite one at a path.

    Raises UnreadableDatabaseError if there is none, or none of this version.
    """
    async with reading(database) as engine:
        return await read_status(engine, window)
