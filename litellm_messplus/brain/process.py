"""The brain in a process of its own, for all workers of a database.

Started by a worker (`keeper.py`), which writes what it needs to its standard input, as a pickle,
and reads one line of its standard output: that it is ready, that another process is the brain
already, or what is wrong. It ends when its standard input is closed and no other worker is
connected. It imports no LiteLLM.
"""

import asyncio
import gc
import json
import logging
import pickle
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from threadpoolctl import threadpool_limits

from litellm_messplus.brain.brain import new_brain
from litellm_messplus.brain.lease import lease_of
from litellm_messplus.brain.listener import Listener
from litellm_messplus.brain.opening import open_database
from litellm_messplus.brain.place import BrainSettings
from litellm_messplus.brain.workers import Workers
from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.errors import ConfigurationError, DatabaseAwayError, in_one_line
from litellm_messplus.store.database import check_place, create_engine, explained

WAIT_SECONDS = 1.0
"""Seconds between two tries of a service to become the brain, while another one is."""
LEAVE_SECONDS = 1.0
"""Seconds between two looks whether a worker is still connected."""


Until = Callable[[Workers], Awaitable[object]]
"""Returns when a brain with these workers is to end."""


async def serve(given: BrainSettings, until: Until) -> bool:
    """Be the brain of a database until then; return False at once if another process is. Raises
    ConfigurationError, and DatabaseAwayError."""
    check_place(given.settings.database)
    leased = create_engine(given.settings.database)
    lease = lease_of(leased)
    try:
        with explained(leased):
            if not await lease.take():
                return False
        brain = new_brain(given.settings, given.zoos)
        brain.begin(await open_database(given.settings, brain.engines, brain.modes))
        brain.start()
        listener = Listener(brain, given.address, given.token, given.fingerprint)
        try:
            await listener.start()
            gc.collect()
            gc.freeze()
            say(outcome="ready")
            await until(brain.workers)
        finally:
            await listener.close()
            await brain.close()
        return True
    finally:
        await lease.release()
        await leased.dispose()


def say(**outcome: Any) -> None:
    """Tell the worker that started this process how that went."""
    with suppress(BrokenPipeError):
        print(json.dumps(outcome), flush=True)


async def _until_unneeded(workers: Workers) -> None:
    """Wait until the standard input is closed, since the worker that started this process ends, and
    until no other worker is connected; or for SIGTERM."""
    stopped = _signalled(signal.SIGTERM)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    closed = asyncio.create_task(reader.read())
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait((closed, waiting), return_when=asyncio.FIRST_COMPLETED)
    if not stopped.is_set() and workers.count:
        await asyncio.sleep(LEAVE_SECONDS)  # all may be ending
        if workers.count:
            say(outcome="stays")
    while not stopped.is_set() and workers.count:
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await stopped.wait()
    closed.cancel()
    waiting.cancel()


def _signalled(*signals: signal.Signals) -> asyncio.Event:
    """Return an event that is set by any of the signals."""
    stopped = asyncio.Event()
    for each in signals:
        asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    return stopped


def prepare() -> None:
    """Set up logging and the numerical libraries of a process of the brain's own."""
    logging.basicConfig(format="%(asctime)s - messplus:%(levelname)s: brain: %(message)s")
    logger.setLevel(logging.INFO)
    threadpool_limits(limits=1, user_api="blas")


async def as_service(given: BrainSettings) -> None:
    """Be the brain until a signal; while another process is, wait for its end."""
    stopped = _signalled(signal.SIGTERM, signal.SIGINT)
    is_waiting = False
    while not stopped.is_set() and not await serve(given, lambda _: stopped.wait()):
        if not is_waiting:
            logger.info("another brain runs: this one waits for its end")
        is_waiting = True
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                await stopped.wait()


def main() -> None:
    """Read the settings from the standard input, and serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the worker decides
    prepare()
    try:
        given: BrainSettings = pickle.load(sys.stdin.buffer)
    except EOFError:  # the worker's start ended before it was needed
        return
    sys.path.extend(each for each in given.folders if each not in sys.path)
    try:
        if not asyncio.run(serve(given, _until_unneeded)):
            say(outcome="taken")
    except ConfigurationError as error:
        is_away = isinstance(error, DatabaseAwayError)
        say(outcome="refused", is_away=is_away, error=[error.key, error.given, error.allowed])
        raise SystemExit(2) from None
    except Exception as error:
        say(outcome="failed", error=in_one_line(error))
        raise


if __name__ == "__main__":
    main()
