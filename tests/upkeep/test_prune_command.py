"""`messplus prune`: its options."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from tests.support import commands
from tests.support.aged_log import HOUR, LONG_AGO, history, write
from tests.support.builders import build_zoo

DATE = f"{LONG_AGO + 15 * HOUR:%Y-%m-%dT%H:%M:%S}"


@pytest.fixture
async def path(database: AsyncEngine, tmp_path: Path) -> Path:
    """A SQLite database with a log of thirty requests."""
    return await _written(database, tmp_path, 30)


async def _written(database: AsyncEngine, folder: Path, requests: int) -> Path:
    await write(database, build_zoo(), history(requests))
    await database.dispose()
    return folder / "messplus.db"


def run(*given: object) -> Any:
    return commands.run("prune", *map(str, given))


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


def test_old_requests_go_and_the_line_says_how_many(path: Path) -> None:
    would = run("--database", path, "--before", DATE, "--dry-run")
    assert would.exit_code == 0, would.output
    assert would.output.endswith("15 requests would go\n")
    assert count(path) == 30

    assert pruned("--database", path, "--before", DATE)["requests"] == 15
    assert count(path) == 15


@pytest.mark.parametrize(
    "given", [[], ["--key", "a", "--user", "b"], ["--before", DATE, "--key", "a"]]
)
def test_one_choice_of_requests_is_asked_for(path: Path, given: list[str]) -> None:
    assert "give one of --before, --key and --user" in refusal("--database", path, *given)
    assert count(path) == 30


def test_a_key_is_erased_and_the_command_says_of_how_many_requests(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE requests SET key_alias = 'her key' WHERE position < 40")
        connection.commit()
        query = "SELECT COUNT(*) FROM requests WHERE key_alias = 'her key'"
        (own,) = connection.execute(query).fetchone()

    would = run("--database", path, "--key", "her key", "--dry-run")
    assert would.output.endswith(f"{own} requests would go\n")
    assert pruned("--database", path, "--key", "her key")["requests"] == own
    assert count(path) == 30
    assert pruned("--database", path, "--user", "nobody")["requests"] == 0


def test_a_young_date_is_refused(path: Path) -> None:
    today = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    assert "at least a day ago" in refusal("--database", path, "--before", today)


def test_no_database_is_made(tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    assert "there is no database" in refusal("--database", missing, "--before", DATE)
    assert not missing.exists()


def test_an_id_that_was_pruned_is_explained_as_one_that_is_not_there(path: Path) -> None:
    pruned("--database", path, "--before", DATE)
    results = [
        CliRunner().invoke(app, ["requests", given, "--database", str(path)])
        for given in ("r1", "never")
    ]
    first, second = (str(result.exception).replace("r1", "never") for result in results)
    assert first == second
    assert "that is not pruned" in first
