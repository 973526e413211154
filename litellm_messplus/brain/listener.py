"""The brain's end of the connections: workers that say hello with its token and its settings."""

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

from litellm_messplus.brain.brain import Brain
from litellm_messplus.brain.contract import Hands, Road
from litellm_messplus.brain.messages import Ended, ZooNow
from litellm_messplus.brain.road import RequestRoad
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
from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.loading import version

LOOK_SECONDS = 0.5
"""Seconds between two looks for what workers are to be told."""


class RemoteHands:
    """The hands of a worker at the other end of a connection, described in `contract.Hands`: a
    question raises BrainAwayError where the worker is gone."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    def __getattr__(self, name: str) -> Any:
        return partial(self.peer.ask if methods(Hands)[name].is_answered else self.tell, name)

    def tell(self, name: str, *arguments: Any) -> None:
        """Send what is not answered; do nothing if the worker is gone."""
        with suppress(BrainAwayError):
            self.peer.tell(name, *arguments)


@dataclass(eq=False, repr=False)
class _Counted:
    """The road of one worker, which counts the calls of it that ended: those that are written are
    acknowledged."""

    road: RequestRoad
    received: int = 0
    acknowledged: int = 0

    def ended(self, ended: Ended) -> None:
        self.received += 1
        self.road.ended(ended)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.road, name)


class Listener:
    """The server of a brain. ``address`` is the path of a Unix socket, or a host and port."""

    def __init__(
        self, brain: Brain, address: Path | tuple[str, int], token: str, settings: str
    ) -> None:
        self._brain, self._address = brain, address
        self._token, self._settings = token, settings
        self._server: asyncio.Server | None = None
        self._connected: dict[RemoteHands, _Counted] = {}
        self._told: Mapping[str, ZooNow] = {}

    async def start(self) -> None:
        """Begin to accept workers. Raises OSError if the address cannot be used."""
        if isinstance(self._address, Path):
            self._address.unlink(missing_ok=True)
            before = os.umask(0o177)  # nobody else may connect
            try:
                self._server = await asyncio.start_unix_server(self._serve, self._address)
            finally:
                os.umask(before)
        else:
            self._server = await asyncio.start_server(self._serve, *self._address)
        self._brain.tasks.start(self._tell(), "listener")

    async def close(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
        for hands in list(self._connected):
            hands.peer.close()
        if isinstance(self._address, Path):
            self._address.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = Hello(FORMAT, version(), position=self._brain.learner.position)
        try:
            hello = await read_hello(reader)
            refused = hello.fits(self._token, self._settings)
        except UnlikeError as error:
            writer.close()
            logger.warning("a worker was refused: %s", error)
            return
        writer.write(encoded(own._replace(refused=refused)))
        if refused:
            writer.close()
            logger.warning("a worker was refused: %s", refused)
            return
        if not hello.worker:
            writer.close()
            return
        road = _Counted(self._brain.road)
        peer = Peer(reader, writer, Road, road, Hands, self._brain.counters)
        hands = RemoteHands(peer)
        started = datetime.fromtimestamp(hello.started, UTC)
        self._brain.workers.join(hello.worker, cast("Hands", hands), started)
        self._connected[hands] = road
        hands.know(dict(self._brain.zoos))
        try:
            await peer.run()
        finally:
            del self._connected[hands]
            self._brain.leave(hello.worker)

    async def _tell(self) -> None:
        """Tell the workers of changed zoos, and what of theirs is written."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with self._brain.counters.tolerated("messages_failed", "workers were not told"):
                await self._look()

    async def _look(self) -> None:
        now = dict(self._brain.zoos)
        if now != self._told:
            self._told = now
            for hands in list(self._connected):
                hands.know(now)
        counts = [(hands, road, road.received) for hands, road in self._connected.items()]
        if any(received != road.acknowledged for _, road, received in counts):
            await self._brain.journal.flush()
            for hands, road, received in counts:
                road.acknowledged = received
                hands.written(received)
