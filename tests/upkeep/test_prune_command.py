"""`messplus prune`: its options, and what a kill in the middle leaves."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from tests.support.aged_log import HOUR, LONG_AGO, history, write
from tests.support.builders import build_zoo
from tests.support.patience import until

DATE = f"{LONG_AGO + 15 * HOUR:%Y-%m-%dT%H:%M:%S}"
MOST = f"{LONG_AGO + 700 * HOUR:%Y-%m-%dT%H:%M:%S}"
TABLES = {"requests": "request_id", "calls": "call_id", "labels": "label_id"}


@pytest.fixture
async def path(database: AsyncEngine, tmp_path: Path) -> Path:
    """A SQLite database with a log of thirty requests."""
    return await _written(database, tmp_path, 30)


@pytest.fixture
async def long_path(database: AsyncEngine, tmp_path: Path) -> Path:
    """One of eight hundred."""
    return await _written(database, tmp_path, 800)


async def _written(database: AsyncEngine, folder: Path, requests: int) -> Path:
    await write(database, build_zoo(), history(requests))
    await database.dispose()
    return folder / "messplus.db"


def run(*given: object) -> Any:
    return CliRunner().invoke(app, ["prune", *map(str, given)])


def pruned(*given: object) -> dict[str, Any]:
    result = run(*given, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refusal(*given: object) -> str:
    result = run(*given)
    assert isinstance(result.exception, SystemExit), result.exception
    return str(result.exception.code)


def count(path: Path, table: str = "requests") -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def test_old_requests_go_to_the_folder(path: Path, tmp_path: Path) -> None:
    found = pruned("--database", path, "--before", DATE, "--to", tmp_path / "archive")
    assert found["rows"]["requests"] == 30 - count(path) >= 15
    rows = pl.read_parquet(tmp_path / "archive" / "requests" / "*.parquet")
    assert rows.height == found["rows"]["requests"]


def test_the_table_says_what_went(path: Path) -> None:
    result = run("--database", path, "--before", DATE, "--dry-run")
    assert result.exit_code == 0, result.output
    assert "would go" in result.output
    assert count(path) == 30


@pytest.mark.parametrize(
    "given",
    [
        ["--before", DATE],
        ["--drop"],
        ["--before", DATE, "--drop", "--to", "folder"],
        ["--before", DATE, "--drop", "--to", "folder", "--dry-run"],
    ],
)
def test_a_date_and_one_way_are_asked_for(path: Path, given: list[str]) -> None:
    assert "either --to FOLDER or --drop" in refusal("--database", path, *given)
    assert count(path) == 30


def test_a_key_is_erased_and_the_command_says_of_how_many_requests(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE requests SET key_alias = 'her key' WHERE position < 40")
        connection.commit()
        query = "SELECT COUNT(*) FROM requests WHERE key_alias = 'her key'"
        (own,) = connection.execute(query).fetchone()

    would = run("--database", path, "--key", "her key", "--dry-run")
    assert would.output == f"zoo: {own} requests would be erased\n"
    assert pruned("--database", path, "--key", "her key", "--drop")["erased"] == {"zoo": own}
    assert count(path) == 30
    result = run("--database", path, "--user", "nobody", "--drop")
    assert result.output == "there are no such requests\n"


@pytest.mark.parametrize(
    "given",
    [
        ["--key", "a"],
        ["--key", "a", "--user", "b", "--drop"],
        ["--key", "a", "--drop", "--dry-run"],
        ["--user", "b", "--to", "folder"],
        ["--user", "b", "--drop", "--forget-zoo", "zoo"],
    ],
)
def test_one_owner_and_one_way_are_asked_for(path: Path, given: list[str]) -> None:
    assert "either --drop or --dry-run" in refusal("--database", path, *given)


def test_a_young_date_is_refused(path: Path) -> None:
    today = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    assert "at least a day ago" in refusal("--database", path, "--before", today, "--drop")


def test_no_database_is_made(tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    assert "there is no database" in refusal("--database", missing, "--before", DATE, "--drop")
    assert not missing.exists()


def test_a_zoo_of_which_nothing_was_pruned_has_nothing_to_forget(path: Path) -> None:
    assert "of which nothing was pruned" in refusal("--database", path, "--begin-anew", "zoo")


def test_an_id_that_was_pruned_is_explained_as_one_that_is_not_there(path: Path) -> None:
    pruned("--database", path, "--before", DATE, "--drop")
    results = [
        CliRunner().invoke(app, ["explain", given, "--database", str(path)])
        for given in ("r1", "never")
    ]
    first, second = (str(result.exception).replace("r1", "never") for result in results)
    assert first == second
    assert "that is not pruned" in first


def start_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT start FROM log_head").fetchone()[0])


Stage = Callable[[Path, Path], bool]
STAGES: dict[str, Stage] = {
    "the start has moved": lambda path, folder: start_of(path) > 0,
    "a file is being written": lambda path, folder: folder.exists(),
    "the files are there": lambda path, folder: any((folder / "labels").glob("*.parquet")),
    "rows are being deleted": lambda path, folder: count(path) < 800,
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_kill_loses_nothing_and_the_next_run_finishes(
    long_path: Path, tmp_path: Path, stage: str
) -> None:
    path, folder = long_path, tmp_path / "archive"
    before = _everything(path, folder)
    process = _command(path, folder)
    until(lambda: process.poll() is not None or STAGES[stage](path, folder))
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it was over before: the test is blunt"

    assert _everything(path, folder) == before
    pruned("--database", path, "--before", MOST, "--to", folder)
    assert count(path) == 100
    assert pl.read_parquet(folder / "requests" / "*.parquet").height == 700
    assert _everything(path, folder) == before


def _command(path: Path, folder: Path) -> subprocess.Popen[bytes]:
    command = [str(Path(sys.executable).parent / "messplus"), "prune", "--database", str(path)]
    command += ["--before", MOST, "--to", str(folder)]
    return subprocess.Popen(command, env=dict(os.environ))


def _everything(path: Path, folder: Path) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Rows by table and key, in the log or in the archive."""
    found: dict[str, dict[str, tuple[Any, ...]]] = {}
    for table, key in TABLES.items():
        rows = {}
        with closing(sqlite3.connect(path)) as connection:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            names = [key, "position", *[name for name in columns if name in ("features", "value")]]
            for row in connection.execute(f"SELECT {', '.join(names)} FROM {table}"):
                rows[row[0]] = tuple(row)
        for file in (folder / table).glob("*.parquet"):
            for row in pl.read_parquet(file, columns=names).select(names).iter_rows():
                rows[row[0]] = row
        found[table] = rows
    return found
