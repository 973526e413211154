"""The history as a real Datasette shows it, with what `messplus datasette-metadata` prints."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from litellm_messplus.inspecting.datasette import HIDDEN, QUESTIONS, VIEWS
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.tables import metadata
from tests.support.markdown import ROOT
from tests.support.outcomes import write_outcomes
from tests.support.patience import PATIENT, until
from tests.support.ports import free_port


def printed(database: Path) -> dict[str, Any]:
    answer = CliRunner().invoke(app, ["datasette-metadata", "--database", str(database)])
    assert answer.exit_code == 0
    found: dict[str, Any] = json.loads(answer.output)
    return found


@pytest.fixture
async def written(database_url: str, tmp_path: Path) -> AsyncIterator[Path]:
    """A log that is still open: its newest rows are in the file beside it."""
    engine = create_engine(database_url)
    await migrate(engine)
    await write_outcomes(engine)
    yield tmp_path / "messplus.db"
    await engine.dispose()


@pytest.fixture
def datasette(written: Path, tmp_path: Path) -> Iterator[httpx.Client]:
    described = tmp_path / "metadata.json"
    described.write_text(json.dumps(printed(written)))
    port = free_port()
    command = [sys.executable, "-m", "datasette", str(written), "--metadata", str(described)]
    process = subprocess.Popen(
        [*command, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENT) as client:
            until(lambda: is_there(client))
            yield client
    finally:
        process.terminate()
        process.wait(PATIENT)


def is_there(client: httpx.Client) -> bool:
    try:
        return client.get("/-/versions.json").is_success
    except httpx.TransportError:
        return False


def test_datasette_shows_rows_descriptions_and_questions(datasette: httpx.Client) -> None:
    rows = datasette.get("/messplus/requests.json?_shape=array").json()
    assert {row["request_id"] for row in rows} == {"r1", "r2", "r3"}

    shown = datasette.get("/messplus/requests").text
    assert "One row a user&#39;s request" in shown
    assert "What one more satisfied request might cost" in shown
    assert VIEWS["outcomes_per_key"] in datasette.get("/messplus/outcomes_per_key").text

    listed = {each["name"]: each for each in datasette.get("/messplus.json").json()["tables"]}
    assert all(listed[name]["hidden"] for name in HIDDEN)
    assert not listed["requests"]["hidden"]

    for name in QUESTIONS:
        answer = datasette.get(f"/messplus/{name}.json?_shape=array")
        assert answer.status_code == 200, name
    keys = datasette.get("/messplus/which_keys_cost_most.json?_shape=array").json()
    assert [(row["key_alias"], row["saved"]) for row in keys] == [("ada", 7.0), (None, 2.0)]


def test_every_table_and_view_is_described(written: Path) -> None:
    tables = printed(written)["databases"]["messplus"]["tables"]
    with sqlite3.connect(written) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        there = {name for (name,) in names if not name.startswith("sqlite_")}

    assert set(tables) == there
    for name, table in metadata.tables.items():
        assert set(tables[name]["columns"]) == set(table.columns.keys())


def test_a_view_is_described_in_the_words_of_the_page() -> None:
    page = " ".join((ROOT / "docs" / "sql.md").read_text("utf-8").split())

    def first_words(words: str) -> str:
        return words.split(".")[0].split(", a row")[0]

    assert [name for name, words in VIEWS.items() if first_words(words) not in page] == []


def test_a_history_in_postgres_is_refused_with_what_is_allowed() -> None:
    url = "postgresql+asyncpg://db.example.com/messplus"
    answer = CliRunner().invoke(app, ["datasette-metadata", "--database", url])

    assert answer.exit_code == 1
    assert "allowed: a SQLite file" in str(answer.exception)
