"""The page on a real port, without LiteLLM: its routes on a database, and a key that is known."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from fastapi import FastAPI, HTTPException, Request
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.modes import LiveModes, ModeChanges
from litellm_messplus.brain.web import at_most, own_origin, zoo_routes
from litellm_messplus.brain.zoos import ZooDesk
from litellm_messplus.costs.price import Price
from litellm_messplus.figures.figure import Plain
from litellm_messplus.page.data import PageData
from litellm_messplus.page.routes import COOKIE, build_page_routes
from litellm_messplus.page.sign_ins import SignIns
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.status.build import read_status
from litellm_messplus.status.figures import LiveLevels
from litellm_messplus.store.database import create_engine, migrate
from tests.page.seeded import CANDIDATES, LARGE, LIVE, ZOO, fill
from tests.support.builders import build_engine, build_zoo
from tests.support.ports import free_port
from tests.support.serving import Serving

KEY = "sk-of-an-administrator"
T = TypeVar("T")


def make_database(path: Path, count: int) -> str:
    """A SQLite file with so many requests; returns its URL."""
    url = f"sqlite+aiosqlite:///{path}"

    async def make() -> None:
        database = create_engine(url)
        await migrate(database)
        await fill(database, count, datetime.now(UTC))
        await database.dispose()

    asyncio.run(make())
    return url


async def apart(key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
    """Share nothing: each asks for itself."""
    return await read()


@dataclass
class ServedPage:
    """A page in service. ``live`` are the promises that are configured."""

    database_url: str
    live: LiveLevels = field(default_factory=lambda: LIVE)
    port: int = field(default_factory=free_port)
    counters: Counters = field(default_factory=Counters)
    unrouted: list[Plain] = field(default_factory=list)
    codes_per_minute: int = 1_000_000

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/messplus/ui/"

    def start(self) -> "ServedPage":
        database = create_engine(self.database_url, connections=3)
        self.sign_ins = SignIns(database)

        async def status() -> Plain:
            found = await read_status(database, live=self.live, with_calibration=False)
            return found | {"unrouted": self.unrouted}

        @asynccontextmanager
        async def disposing(_: FastAPI) -> AsyncIterator[None]:
            yield
            await database.dispose()

        app = FastAPI(lifespan=disposing)
        routes = build_page_routes(
            PageData(database, status, apart),
            self.sign_ins,
            self.counters,
            administrator=administrator,
            viewer=self._view,
            own=own_origin,
            limited=at_most(self.codes_per_minute),
        )
        app.include_router(routes)
        app.include_router(zoo_routes(self._desk(database), self.sign_ins, self.counters))
        self._serving = Serving(app, self.port)
        return self

    def stop(self) -> None:
        self._serving.stop()

    def _desk(self, database: AsyncEngine) -> ZooDesk:
        """Build the desk of a zoo that is watched by its file."""
        prices = {name: Price(cost, cost) for name, (cost, _) in CANDIDATES.items()}
        engine = build_engine(build_zoo(prices, ZOO, mode="watch", before=LARGE))
        modes = LiveModes({ZOO: engine.zoo.settings})
        changes = ModeChanges(database, modes)
        return ZooDesk(database, {ZOO: engine}, modes, changes)

    async def _view(self, request: Request) -> None:
        if not await self.sign_ins.is_open(request.cookies.get(COOKIE, "")):
            await administrator(request)


async def administrator(request: Request) -> None:
    """As LiteLLM would say it, of one key."""
    given = request.headers.get("authorization")
    if given is None:
        raise HTTPException(401, "no key was given")
    if given != f"Bearer {KEY}":
        raise HTTPException(403, "only an administrator of the proxy may see this")
