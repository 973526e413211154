"""A real Postgres server of the tests' own, on a free port, from whatever is installed."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from tests.support.packages import program
from tests.support.patience import PATIENT, until
from tests.support.ports import free_port

USER = "postgres"
"""Whom the server runs as where the tests run as root: it refuses to be root."""


@dataclass
class Postgres:
    """Its data lie in ``folder``. As an operator would have it: every commit reaches the disk."""

    folder: Path
    programs: Path
    connections: int = 100
    port: int = field(default_factory=free_port)
    _server: subprocess.Popen[bytes] | None = None
    _names: Iterator[int] = field(default_factory=lambda: count(1))

    def create(self) -> None:
        """Make its files, and start."""
        options = ("--auth=trust", f"--username={USER}", "--no-sync", "--encoding=UTF8")
        subprocess.run(
            [self.programs / "initdb", *options, "--locale=C", self.folder / "data"],
            check=True,
            capture_output=True,
            **self._as_somebody(),
        )
        self.start()

    def start(self) -> None:
        self._launch()
        asyncio.run(self._answers())

    async def start_again(self) -> None:
        """The same inside an event loop."""
        self._launch()
        await self._answers()

    def _launch(self) -> None:
        arguments = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "max_connections": self.connections,
            "fsync": "off",  # processes fail here, and no machine does
        }
        options = [f"--{name}={value}" for name, value in arguments.items()]
        with (self.folder / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                [self.programs / "postgres", "-D", self.folder / "data", *options],
                stdout=log,
                stderr=log,
                **self._as_somebody(),
            )

    def stop(self) -> None:
        """As an operator would, at once: whoever is connected is cut off."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Every process of it, as a machine's failure would: the first has no time to tell the
        others, which end by themselves."""
        self._end(signal.SIGKILL)

    def database(self) -> str:
        """The URL of a new, empty database."""
        return asyncio.run(self.new_database())

    async def new_database(self) -> str:
        """The same inside an event loop."""
        name = f"test_{next(self._names)}"
        await fetch(self.url(), f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, name: str = "postgres", user: str = USER) -> str:
        return f"postgresql+asyncpg://{user}@127.0.0.1:{self.port}/{name}"

    def execute(self, statement: str) -> list[dict[str, Any]]:
        """Run one statement as the administrator, and commit."""
        return query(self.url(), statement)

    async def _answers(self) -> None:
        async with asyncio.timeout(PATIENT):
            while True:
                try:
                    await fetch(self.url(), "SELECT 1")
                    return
                except Exception:
                    if self._server is None or self._server.poll() is not None:
                        raise AssertionError((self.folder / "server.log").read_text()) from None
                    await asyncio.sleep(0.05)

    def _end(self, sign: signal.Signals) -> None:
        if self._server is None:
            return
        server, self._server = self._server, None
        server.send_signal(sign)
        server.wait(timeout=PATIENT)

    def _as_somebody(self) -> dict[str, Any]:
        return {"user": USER, "cwd": self.folder} if os.geteuid() == 0 else {"cwd": self.folder}


@contextmanager
def postgres_server(connections: int = 100) -> Iterator[Postgres]:
    """A server for the block, that takes so many connections; its files are removed at the end.
    Skips the test where Postgres is not installed."""
    programs = program("postgresql").resolve().parent
    folder = Path(tempfile.mkdtemp(prefix="messplus-postgres-"))  # pytest's folders are private
    server = Postgres(folder, programs, connections)
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        server.create()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


POOLER = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = users
pool_mode = transaction
default_pool_size = 5
"""


@contextmanager
def pooler(server: Postgres) -> Iterator[Callable[[str], str]]:
    """PgBouncer before the server for the block, with five sessions for all of its clients. Gives
    what makes the URL of a database there from its own."""
    port, folder = free_port(), Path(tempfile.mkdtemp(dir=server.folder))
    (folder / "users").write_text(f'"{USER}" ""')
    (folder / "ini").write_text(POOLER.format(server=server.port, port=port))
    somebody = {**server._as_somebody(), "cwd": folder}
    if os.geteuid() == 0:
        shutil.chown(folder, USER)
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [program("pgbouncer"), "ini"], stdout=log, stderr=log, **somebody
        ) as process,
    ):
        try:
            until(lambda: "up" in (folder / "log").read_text())
            yield lambda url: url.replace(f":{server.port}/", f":{port}/")
        finally:
            process.terminate()


def query(url: str, statement: str, **values: Any) -> list[dict[str, Any]]:
    """The rows that a statement gives, committed; outside of any event loop."""
    return asyncio.run(fetch(url, statement, **values))


async def fetch(url: str, statement: str, **values: Any) -> list[dict[str, Any]]:
    """The rows that a statement gives, committed."""
    engine = create_async_engine(make_url(url), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() as connection:
            found = await connection.execute(text(statement), values)
            return [dict(row) for row in found.mappings()] if found.returns_rows else []
    finally:
        await engine.dispose()
