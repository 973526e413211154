"""A real Postgres of a test's own, on a free port, which can be killed and started again."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support.ports import free_port

USER = "postgres"
"""Who runs it where the tests are run by root, whom Postgres refuses."""
PLUGIN = "messplus"
"""Role and database of the plugin, which is no superuser: places are reserved for those."""
CONNECTIONS = 30


def _program(name: str) -> str:
    """Its path: Debian keeps the servers out of PATH. Skips the test where it is not installed."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which(name, path=os.pathsep.join([*map(str, places), os.environ["PATH"]]))
    if found is None:
        pytest.skip(f"there is no {name} (Debian: apt-get install postgresql)")
    return found


class PostgresServer:
    """Makes its cluster when it is made; begins to serve with ``start``."""

    def __init__(self) -> None:
        self._port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="messplus-postgres-"))
        self._user = USER if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(self._folder, pwd.getpwnam(USER).pw_uid, -1)
        data = str(self._folder / "data")
        self._run("initdb", "--pgdata", data, "--auth", "trust", "--username", USER, "--no-sync")

    @property
    def url(self) -> str:
        """For the plugin."""
        return f"postgresql+asyncpg://{PLUGIN}@127.0.0.1:{self._port}/{PLUGIN}"

    @property
    def address(self) -> dict[str, str | int]:
        """For a client of the plugin's role."""
        return {"host": "127.0.0.1", "port": self._port, "user": PLUGIN, "database": PLUGIN}

    def make_database(self) -> None:
        """Make the plugin's role and database, once, in a running server."""
        self.execute(f"CREATE ROLE {PLUGIN} LOGIN")
        self.execute(f"CREATE DATABASE {PLUGIN} OWNER {PLUGIN}")

    def execute(self, statement: str) -> None:
        """As the superuser."""
        where = ["--host", "127.0.0.1", "--port", str(self._port), "--username", USER]
        self._run("psql", *where, "--quiet", "--command", statement)

    def start(self) -> None:
        """Start it, after a kill too; returns when it takes connections."""
        options = (
            f"-p {self._port} -c listen_addresses=127.0.0.1 -c max_connections={CONNECTIONS} "
            f"-c unix_socket_directories={self._folder}"
        )
        log = str(self._folder / "log")
        self._control("start", "--wait", "--log", log, "--options", options)

    def kill(self) -> None:
        """End it as a crash would: no connection is closed, and it recovers at its next start."""
        self._control("stop", "--mode", "immediate")

    def remove(self) -> None:
        """End it, and leave nothing behind."""
        self.kill()
        shutil.rmtree(self._folder)

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "--pgdata", str(self._folder / "data"), *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        with (self._folder / "commands").open("ab") as output:
            subprocess.run(
                [_program(program), *arguments],
                check=True,
                user=self._user,
                cwd=self._folder,
                stdout=output,
                stderr=output,
            )
