"""The status of now, from the log and, in the proxy, from the engines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from litellm_messplus.status import queries
from litellm_messplus.status.alerts import journal_alerts
from litellm_messplus.status.calibration import ZooCalibration
from litellm_messplus.status.judge import level_alerts
from litellm_messplus.status.judged_calls import judged_calls
from litellm_messplus.status.live import LiveLevel, LiveLevels
from litellm_messplus.status.prequential import Prequential
from litellm_messplus.status.queries import Calls, Key, Newest, Totals
from litellm_messplus.status.report import LevelStatus, Source, Status
from litellm_messplus.status.single import best_single
from litellm_messplus.status.windows import window_status

WINDOW = 500
"""Requests of the last window, unless asked otherwise."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What the log says, by zoo and service level."""

    overall: Mapping[Key, Totals]
    last: Mapping[Key, Totals]
    without_cost: Mapping[Key, int]
    last_without_cost: Mapping[Key, int]
    calls: Mapping[Key, list[Calls]]
    newest: Mapping[Key, Newest]
    out_of_reach: set[Key]
    calibration: Sequence[ZooCalibration]


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
    plugin's own; without them nothing is said of the journal. The calibration takes longer than
    all the rest, and neither alerts nor metrics need it.
    Raises ValueError for a window below 1, and sqlalchemy.exc.SQLAlchemyError or OSError where
    the database does not answer.
    """
    if window < 1:
        raise ValueError(f"a window of {window} requests")
    return build_status(await _read(database, window, with_calibration), window, live, counters)


async def _read(database: AsyncEngine, window: int, with_calibration: bool) -> Rows:
    async with database.connect() as connection:
        await _hold_still(connection)
        return Rows(
            overall=await queries.totals(connection),
            last=await queries.totals(connection, window),
            without_cost=await queries.calls_without_cost(connection),
            last_without_cost=await queries.calls_without_cost(connection, window),
            calls=await queries.calls_of_candidates(connection),
            newest=await queries.newest(connection),
            out_of_reach=await queries.out_of_reach(connection),
            calibration=await _calibration(connection) if with_calibration else (),
        )


async def _calibration(connection: AsyncConnection) -> list[ZooCalibration]:
    prequential = Prequential()
    async for call in judged_calls(connection):
        prequential.add(call)
    return prequential.calibration()


async def _hold_still(connection: AsyncConnection) -> None:
    """Let all queries see the log as of one moment, so that the figures agree with each other."""
    if connection.dialect.name == "sqlite":
        await connection.exec_driver_sql("BEGIN")
    else:
        await connection.execution_options(isolation_level="REPEATABLE READ")


def build_status(
    rows: Rows,
    window: int,
    live: LiveLevels | None = None,
    counters: Mapping[str, int] | None = None,
) -> Status:
    """The status that the rows make, with its alerts."""
    known = set(rows.newest) if live is None else set(live)
    levels = [
        found
        for key in sorted(known)
        if (found := _level(key, rows, live.get(key) if live else None)) is not None
    ]
    alerts = [
        *journal_alerts(counters or {}),
        *(a for level in levels for a in level_alerts(level)),
    ]
    zoos = {zoo for zoo, _ in known}
    calibration = tuple(each for each in rows.calibration if each.zoo in zoos)
    return Status(window, tuple(levels), tuple(alerts), calibration)


def _level(key: Key, rows: Rows, live: LiveLevel | None) -> LevelStatus | None:
    """None for a level of which neither the engine nor the log can say the alpha."""
    newest = rows.newest.get(key)
    given = live.alpha if live else None
    alpha = given if given is not None else newest.alpha if newest else None
    if alpha is None:
        return None
    overall = window_status(rows.overall.get(key), rows.without_cost.get(key, 0), alpha)
    last = window_status(rows.last.get(key), rows.last_without_cost.get(key, 0), alpha)
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
        last=last,
        best_single=best_single(
            rows.calls.get(key, []),
            newest.candidates if newest else (),
            rows.overall.get(key),
            overall.satisfaction.promised,
        ),
    )


def _price(live: LiveLevel | None, newest: Newest | None) -> float | None:
    if live is not None and live.price is not None:
        return live.price
    return newest.price if newest else None


def _is_within_reach(key: Key, rows: Rows, live: LiveLevel | None) -> bool:
    if live is not None and live.is_within_reach is not None:
        return live.is_within_reach
    return key not in rows.out_of_reach
