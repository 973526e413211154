"""A process that runs the same each time: one thread, virtual time, ids that are drawn from a seed.

Installed before the package is imported, so that it also reaches clocks that are default arguments.
The event loop waits for nothing: where all wait for a timer, time goes on to it. What would run in
a thread of aiosqlite or of an executor runs at once, so no two things ever race. A SQLite that is
locked is tried again a little later, as its busy time would.
"""

import asyncio
import os
import pkgutil
import random
import selectors
import sqlite3
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from importlib import import_module
from typing import Any

import aiosqlite.core
import anyio.to_thread

BEGIN = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
BUSY_SECONDS = 0.01
"""Between two attempts at a locked database."""
PAUSE_SECONDS = 20.0
"""Real seconds until a loop without a timer is taken to hang."""
LEFT = tuple(f"litellm_messplus.{name}" for name in ("plugin", "encoders.", "core.neural"))
"""Modules that start something when they are imported, or load large libraries for nothing."""
ENVIRONMENT = {
    "COLUMNS": "120",
    "TERMINAL_WIDTH": "100",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOG": "ERROR",
    "NO_COLOR": "1",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    "TERM": "dumb",
    "TZ": "UTC",
}
"""The last bits of a sum of float32 depend on the processor: each takes the same instructions."""
KEPT = frozenset({"HOME", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TMPDIR", "VIRTUAL_ENV"})
"""What else is taken over: no key, address or colour of who records."""

machine_clock = time.process_time
_machine_urandom = os.urandom


class Now:
    """The time of everybody; ``seconds`` is that of the monotonic clocks."""

    seconds = 1000.0
    started: datetime | None = None
    """The time of day at second 1000; None while the process still starts."""
    bytes = random.Random(0)

    @classmethod
    def date(cls) -> datetime:
        """Return the time of day."""
        assert cls.started is not None
        return cls.started + timedelta(seconds=cls.seconds - 1000.0)


def begin(at: datetime = BEGIN) -> None:
    """Set all clocks and draws back to the start."""
    Now.seconds, Now.started, Now.bytes = 1000.0, at, random.Random(0)
    random.seed(0)
    for tails in (getattr(module, "_tails", None) for module in list(sys.modules.values())):
        if isinstance(tails, list):
            tails.clear()


class _Datetimes(type(datetime)):  # type: ignore[misc]
    def __instancecheck__(cls, found: object) -> bool:
        return isinstance(found, datetime)


class Stilled(datetime, metaclass=_Datetimes):
    """`datetime`, whose `now` is that of the virtual clock."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        """Return the virtual time."""
        return Now.date().astimezone(tz)


class _Selector(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(PAUSE_SECONDS if timeout is None else 0)
        if timeout is None and not events:
            raise RuntimeError("everybody waits for something that never happens")
        if not events and timeout:
            Now.seconds += timeout
        return events


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__(_Selector())

    def time(self) -> float:
        return Now.seconds

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


class _Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return _Loop()


class _Inline:
    """In the place of the queue to the thread of a SQLite connection."""

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None

    def put_nowait(self, item: tuple["asyncio.Future[Any] | None", Callable[[], Any]]) -> None:
        future, work = item
        if future is not None:
            future.get_loop().call_soon(self._run, future, work)
        else:
            with suppress(Exception):  # nobody waits for it
                work()

    def _run(self, future: "asyncio.Future[Any]", work: Callable[[], Any]) -> None:
        if self._connection is not None:
            with suppress(sqlite3.ProgrammingError):  # it is closed
                self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            result = work()
        except BaseException as error:
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                future.get_loop().call_later(BUSY_SECONDS, self._run, future, work)
            elif not future.done():
                future.set_exception(error)
            return
        if isinstance(result, sqlite3.Connection):
            self._connection = result
            result.create_function("current_timestamp", 0, _sqlite_now)
        if result is aiosqlite.core._STOP_RUNNING_SENTINEL:
            self._connection = None
        if not future.done():
            future.set_result(result)


def _sqlite_now() -> str:
    return f"{Now.date():%Y-%m-%d %H:%M:%S}"


class _NoThread:
    daemon = True

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def start(self) -> None: ...


async def _at_once(func: Callable[..., Any], *args: Any, **_: Any) -> Any:
    """Run what FastAPI would run in a thread."""
    return func(*args)


def install() -> None:
    """Take over clocks, event loops, threads of SQLite and randomness, then import the package."""
    assert "numpy" not in sys.modules, "it has chosen its instructions already"
    for name in os.environ.keys() - KEPT:
        del os.environ[name]
    os.environ.update(ENVIRONMENT)
    time.tzset()
    _clocks()
    os.urandom = lambda size: Now.bytes.randbytes(size) if Now.started else _machine_urandom(size)
    random._urandom = os.urandom  # type: ignore[attr-defined]
    asyncio.set_event_loop_policy(_Policy())
    vars(aiosqlite.core).update(SimpleQueue=_Inline, Thread=_NoThread)
    anyio.to_thread.run_sync = _at_once  # type: ignore[assignment]
    package = import_module("litellm_messplus")
    for found in pkgutil.walk_packages(package.__path__, "litellm_messplus."):
        if not found.name.startswith(LEFT):
            import_module(found.name)
    for name, module in list(sys.modules.items()):
        if name.startswith("litellm_messplus") and vars(module).get("datetime") is datetime:
            vars(module)["datetime"] = Stilled


def _clocks() -> None:
    for name in ("monotonic", "perf_counter"):
        real = getattr(time, name)
        setattr(time, name, lambda real=real: Now.seconds if Now.started else real())
    real_time, real_ns = time.time, time.time_ns
    time.time = lambda: Now.date().timestamp() if Now.started else real_time()
    time.time_ns = lambda: round(Now.date().timestamp() * 1e6) * 1000 if Now.started else real_ns()
