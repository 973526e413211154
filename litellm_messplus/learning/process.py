"""The learner in a process of its own: it moves the inbox into the log, folds it, and publishes.

Started by a worker (`learning/keeper.py`), which writes what it needs to its standard input, as a
pickle, and reads one line of its standard output: that it is ready, that another process is the
learner already, or what is wrong. It ends when its standard input is closed. It imports neither
LiteLLM nor what serves requests.
"""

import asyncio
import json
import logging
import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine
from threadpoolctl import threadpool_limits

from litellm_messplus.core.engine import Engine
from litellm_messplus.learning.learner import SNAPSHOT_EVERY
from litellm_messplus.learning.lease import adjacent_path, lease_of
from litellm_messplus.learning.loop import LearnerLoop
from litellm_messplus.learning.outlet import SUFFIX, outlet_of
from litellm_messplus.restore import restore
from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.errors import ConfigurationError, DatabaseAwayError
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store import inbox
from litellm_messplus.store.database import create_engine, explained, is_the_databases
from litellm_messplus.store.inbox import DeposedError

NICE = 5
"""How far the learner stands back behind the workers, where all cores are busy."""


@dataclass
class KnownEncoder:
    """The facts about the encoder, which itself runs where requests are served."""

    name: str
    dimension: int
    is_fast: bool


@dataclass(frozen=True)
class LearnerSettings:
    """The settings that a learner is started with."""

    database: str
    zoos: Mapping[str, Zoo]
    encoder: KnownEncoder
    seed: int
    snapshot_every: int = SNAPSHOT_EVERY


# The process.


async def serve(settings: LearnerSettings) -> None:
    """Learn for a database until the standard input is closed."""
    database = create_engine(settings.database)
    lease = lease_of(database)
    try:
        with explained(database):
            _find_file(database)
            is_taken = not await lease.take()
            if not is_taken:
                loop = await _elected(settings, database)
        if is_taken:
            _say(outcome="taken")
            return
        await _learn(loop)
    finally:
        await lease.release()
        await database.dispose()


def _find_file(database: AsyncEngine) -> None:
    """Raise FileNotFoundError if the file of a SQLite database was moved away: SQLite would make an
    empty one in its place."""
    if database.dialect.name == "sqlite":
        adjacent_path(database, "").stat()


async def _elected(settings: LearnerSettings, database: AsyncEngine) -> LearnerLoop:
    """Take office: depose earlier learners, restore the state, and publish it."""
    process = f"{socket.gethostname()}:{os.getpid()}"
    outlet = outlet_of(database)
    if database.dialect.name != "postgresql":  # what an earlier database of this name published
        adjacent_path(database, SUFFIX).unlink(missing_ok=True)
    epoch = await inbox.elect(database, process, datetime.now(UTC))
    engines = {
        name: Engine(zoo, settings.encoder, settings.seed, decides=False)
        for name, zoo in settings.zoos.items()
    }
    position = await restore(database, engines)
    every = settings.snapshot_every
    loop = LearnerLoop(database, engines, outlet, epoch, position, snapshot_every=every)
    await loop.begin()
    return loop


async def _learn(loop: LearnerLoop) -> None:
    _say(outcome="ready")
    await _until_closed(loop.stop)
    try:
        await loop.run()
        await loop.close()
    except DeposedError:
        logger.warning("another learner was elected: this one ends")
    except Exception as error:
        if not is_the_databases(error):
            raise
        logger.warning("no snapshot was taken at the stop, the next start folds more: %s", error)


async def _until_closed(stop: Callable[[], None]) -> None:
    """Call ``stop`` when the standard input is closed, or upon SIGTERM."""
    running_loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await running_loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    running_loop.add_signal_handler(signal.SIGTERM, stop)

    async def wait() -> None:
        while await reader.read(1024):
            pass
        stop()

    _waiting.start(wait(), "standard-input")


_waiting = Tasks()


def _say(**outcome: Any) -> None:
    """Tell the worker that started this process how that went."""
    print(json.dumps(outcome), flush=True)


def main() -> None:
    """Read the settings from the standard input, and learn."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the worker decides
    os.nice(NICE)
    logging.basicConfig(format="%(asctime)s - messplus:%(levelname)s: learner: %(message)s")
    logger.setLevel(logging.INFO)
    threadpool_limits(limits=1, user_api="blas")
    try:
        settings: LearnerSettings = pickle.load(sys.stdin.buffer)
    except EOFError:  # the worker's start ended before it was needed
        return
    try:
        asyncio.run(serve(settings))
    except ConfigurationError as error:
        is_away = isinstance(error, DatabaseAwayError)
        _say(outcome="refused", is_away=is_away, error=[error.key, error.given, error.allowed])
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
