"""The worker's end of the connection to its brain.

While it is away nothing is decided: requests are served by what is known to hold. Calls that end
are kept until the brain has written them, and sent again to the next one.
"""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from litellm_messplus.brain.contract import Hands, Road
from litellm_messplus.brain.messages import (
    Admission,
    Asked,
    Asking,
    Ended,
    Order,
    Shown,
    ZooNow,
)
from litellm_messplus.brain.place import BrainSettings
from litellm_messplus.brain.wire import (
    FORMAT,
    BrainAwayError,
    Hello,
    Peer,
    UnlikeError,
    encoded,
    methods,
    read_hello,
)
from litellm_messplus.costs.price import Price
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.loading import version
from litellm_messplus.runtime.stand_ins import replace
from litellm_messplus.runtime.tasks import Tasks
from litellm_messplus.runtime.vocabulary import CallRole

RETRY_SECONDS = 0.1
"""Seconds between two tries to connect."""
COUNT_SECONDS = 2.0
"""Seconds between two messages of what this worker has counted."""
MOST = 10_000
"""The most ended calls that are kept until they are written; the oldest are dropped and counted."""
STOP_SECONDS = 5.0
"""Seconds that a stop waits until all is written."""


async def reach(given: BrainSettings, seconds: float) -> int | None:
    """Try to reach the brain for so many seconds, and return the end of its log; None if none
    listens. Raises ConfigurationError if it refuses this worker."""
    ends = time.monotonic() + seconds
    hello = Hello(FORMAT, version(), token=given.token, settings=given.fingerprint)
    while True:
        refused = ""
        try:
            _, writer, welcome = await greet(given.address, hello)
            writer.close()
            return welcome.position
        except OSError:
            pass
        except UnlikeError as error:
            refused = str(error)
        if time.monotonic() > ends:
            if refused:
                raise ConfigurationError("messplus.brain", given.settings.brain, refused)
            return None
        await asyncio.sleep(RETRY_SECONDS)


async def greet(
    address: Path | tuple[str, int], hello: Hello
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Hello]:
    """Connect to a brain, say hello, and return the connection with its answer. Raises OSError if
    none listens, UnlikeError if it refuses."""
    if isinstance(address, Path):
        reader, writer = await asyncio.open_unix_connection(address)
    else:
        reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(encoded(hello))
        welcome = await read_hello(reader)
        if welcome.refused:
            raise UnlikeError(welcome.refused)
    except BaseException:
        writer.close()
        raise
    return reader, writer, welcome


class RemoteRoad:
    """The road through a brain in another process, described in `contract.Road`. ``hands`` answer
    what the brain asks; an answer to a request comes within ``seconds``, or is given up."""

    def __init__(
        self, given: BrainSettings, worker: str, counters: Counters, seconds: float
    ) -> None:
        self._address, self._counters, self._seconds = given.address, counters, seconds
        self._hello = Hello(FORMAT, version(), worker, time.time(), given.token, given.fingerprint)
        self._hands: Hands | None = None
        self._peer: Peer | None = None
        self._silent: tuple[Peer, int] | None = None
        self._connected = asyncio.Event()
        self._ordered: set[str] = set()
        self._shown: dict[str, tuple[Any, ...]] = {}
        self._unwritten: deque[Ended] = deque()
        self._all_written = asyncio.Event()
        self._all_written.set()
        self._sent = 0
        self._tasks = Tasks()

    @property
    def is_connected(self) -> bool:
        """Whether a brain answers."""
        return self._peer is not None

    def start(self, hands: Hands) -> None:
        """Begin to connect, in the running event loop."""
        self._hands = hands
        self._tasks.start(self._run(), "brain")
        self._tasks.start(self._count(), "counts")

    async def connected(self) -> None:
        """Return when a brain answers."""
        await self._connected.wait()

    async def close(self) -> None:
        """Wait until what has ended is written, for ``STOP_SECONDS``, and end the connection."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await self._all_written.wait()
        await self._tasks.close()
        if self._peer is not None:
            self._peer.close()

    async def _run(self) -> None:
        while True:
            try:
                await self._connect()
            except UnlikeError as error:
                self._counters.failure("brain_unlike", str(error))
            except (OSError, BrainAwayError):
                pass  # none listens, or it went at once
            except Exception:
                self._counters.failure("messages_failed", "the brain could not be told")
            self._peer = None
            self._connected.clear()
            await asyncio.sleep(RETRY_SECONDS)

    async def _connect(self) -> None:
        """Connect, and take what the brain asks until it is gone. Raises OSError and
        UnlikeError."""
        reader, writer, _ = await greet(self._address, self._hello)
        assert self._hands is not None
        peer = Peer(reader, writer, Hands, self, Road, self._counters)
        self._ordered.clear()
        self._sent = 0
        for shown in self._shown.values():
            peer.tell("shown", *shown)
        for ended in self._unwritten:
            peer.tell("ended", ended)
            self._sent += 1
        self._peer = peer
        await peer.run()

    async def _count(self) -> None:
        told: Mapping[str, int] = {}
        while True:
            await asyncio.sleep(COUNT_SECONDS)
            told = self._tell_counts(told)

    def _tell_counts(self, told: Mapping[str, int]) -> Mapping[str, int]:
        now = self._counters.as_dict()
        if now != told:
            self._tell("counted", self._hello.worker, now)
        return now

    def __getattr__(self, name: str) -> Any:
        """Return what the brain asks of the hands, or a message to the brain."""
        if name in methods(Hands):
            return getattr(self._hands, name)
        if name not in methods(Road):
            raise AttributeError(name)
        return partial(self._ask if methods(Road)[name].is_answered else self._tell, name)

    def know(self, zoos: dict[str, ZooNow]) -> None:
        if self._hands is not None:
            self._hands.know(zoos)
        self._connected.set()

    def written(self, ended: int) -> None:
        """Forget the calls that are written: those before the newest that were sent since."""
        while self._unwritten and len(self._unwritten) > self._sent - ended:
            self._unwritten.popleft()
        if not self._unwritten:
            self._all_written.set()

    # What is asked of the brain, where more is to be done than to send it.

    async def route(self, asked: Asked, admission: Admission, spent: float) -> Order | str:
        try:
            found: Order | str = await self._ask("route", asked, admission, spent)
        except TimeoutError:
            self._tell("abandon", asked.request_id)
            raise
        return found if isinstance(found, str) else self._order(found)

    async def decide(self, request_id: str, admission: Admission, spent: float) -> Order:
        try:
            return self._order(await self._ask("decide", request_id, admission, spent))
        except TimeoutError:
            self._tell("abandon", request_id)
            raise

    async def pass_by(self, request_id: str, serves: str) -> Order:
        return self._order(await self._ask("pass_by", request_id, serves))

    def ended(self, ended: Ended) -> None:
        call = ended.call
        sent = replace(ended, record=None) if call.request_id in self._ordered else ended
        if call.role is CallRole.SERVED:
            self._ordered.discard(call.request_id)
        self._unwritten.append(ended)
        self._all_written.clear()
        if len(self._unwritten) > MOST:
            self._unwritten.popleft()
            self._counters.failure("records_dropped", "no brain takes what has ended")
        if self._tell("ended", sent):
            self._sent += 1

    def shown(
        self, worker: str, zoo: str, prices: dict[str, Price], replicas: dict[str, str]
    ) -> None:
        self._shown[zoo] = worker, zoo, prices, replicas
        self._tell("shown", *self._shown[zoo])

    async def answer(self, worker: str, asking: Asking) -> Shown:
        self._tell_counts({})
        if self._peer is None:
            raise BrainAwayError("no brain answers")
        found: Shown = await self._peer.ask("answer", worker, asking)
        return found

    def _order(self, order: Order) -> Order:
        self._ordered.add(order.record.request_id)
        return order

    async def _ask(self, name: str, *arguments: Any) -> Any:
        """Ask for what a request waits for. After one answer that did not come in time, nothing is
        asked until the brain is heard again. Raises BrainAwayError and TimeoutError."""
        peer = self._peer
        if peer is None or self._silent == (peer, peer.heard):
            raise BrainAwayError("no brain answers")
        try:
            async with asyncio.timeout(self._seconds):
                return await peer.ask(name, *arguments)
        except TimeoutError:
            self._silent = peer, peer.heard
            raise

    def _tell(self, name: str, *arguments: Any) -> bool:
        """Send what is not waited for; return whether a brain is there."""
        if self._peer is None:
            return False
        try:
            self._peer.tell(name, *arguments)
        except BrainAwayError:
            return False
        return True
