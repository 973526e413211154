"""The recipes of the docs do what they say."""

import asyncio
import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from litellm_messplus import check_encoder
from litellm_messplus.brain.feedback import Feedback
from litellm_messplus.cli.main import app
from tests.support import packages
from tests.support.history import History, migrated
from tests.support.journey import journey
from tests.support.markdown import ROOT, Document

RECIPES = Document(ROOT / "docs" / "recipes.md")
SQL = Document(ROOT / "docs" / "sql.md")
OLD = "UPDATE requests SET created_at = datetime('now', '-90 days') WHERE t = 1"


def code(language: str, heading: str, page: Document = RECIPES) -> str:
    (found,) = [
        block.code
        for block in page.blocks
        if block.language == language and block.headings[-1] == heading
    ]
    return found


async def test_an_archive_holds_all_of_what_is_old(tmp_path: Path) -> None:
    packages.program("sqlite3")
    async with journey(tmp_path) as proxy:
        for _ in range(2):
            await proxy.answers(await proxy.ask())
        await proxy.settled()
    with closing(sqlite3.connect(tmp_path / "messplus.db")) as log:
        ids = [row[0] for row in log.execute("SELECT request_id FROM requests ORDER BY t")]
        log.execute(OLD)
        log.commit()
    script = code("sh", "An archive of what is pruned")
    running = await asyncio.create_subprocess_exec("sh", "-c", script, cwd=tmp_path)
    assert await running.wait() == 0

    for table, column in (("requests", b"request_id,"), ("calls", b"call_id,")):
        written = (tmp_path / f"{table}.csv").read_bytes()
        assert written.startswith(column)
        assert [each.encode() in written for each in ids] == [True, False]
    assert (tmp_path / "labels.csv").read_bytes() == b""


def test_a_budget_stands_beside_a_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_MASTER_KEY", "sk-a-strong-one-for-a-test-1234567890")
    path = tmp_path / "proxy_config.yaml"
    path.write_text(code("yaml", "A budget next to a promise"))
    result = CliRunner().invoke(app, ["check", "--config", str(path)])

    assert result.exit_code == 0, result.exception


def test_labels_from_elsewhere_are_posted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "labels.csv").write_text("id,satisfied\nchatcmpl-1,true\nchatcmpl-2,false\n")
    taken = list[Feedback]()

    def take(request: httpx.Request) -> httpx.Response:
        taken.append(Feedback.model_validate_json(request.content))
        return httpx.Response(200)

    made = partial(httpx.Client, transport=httpx.MockTransport(take))
    monkeypatch.setattr("httpx.Client", made)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.chdir(tmp_path)
    exec(code("python", "Labels from elsewhere"), {})

    assert [(each.id, each.value) for each in taken] == [("chatcmpl-1", 1.0), ("chatcmpl-2", 0.0)]


def test_an_encoder_of_ones_own_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["what", "is", "in", "one", "begin", "end"]
    np.savez("vectors.npz", words=words, vectors=np.eye(len(words), 8, dtype=np.float32))
    found: dict[str, Any] = {}
    exec(code("python", "An encoder of your own"), found)

    check_encoder(found["WordVectors"])


@pytest.fixture
def log_here(recorded: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The seeded log, as `messplus.db` in the folder where the recipes run."""
    migrated(tmp_path / "messplus.db", recorded)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_pandas_reads_the_view(log_here: Path, recorded: History) -> None:
    pytest.importorskip("pandas")
    found: dict[str, Any] = {}
    exec(code("python", "pandas", SQL), found)
    assert len(found["requests"]) == len(recorded.requests) == len(found["answered"]) + 1

    duckdb = pytest.importorskip("duckdb")
    exec(code("python", "DuckDB", SQL), found)
    assert len(duckdb.sql("FROM 'requests.parquet'").fetchall()) == len(recorded.requests)


@pytest.mark.skipif(shutil.which("datasette") is None, reason="pip install datasette")
def test_datasette_answers(log_here: Path, recorded: History) -> None:
    told = subprocess.run(code("sh", "Datasette", SQL), shell=True, capture_output=True, check=True)

    (failed,) = json.loads(told.stdout)
    assert failed["request_id"] == recorded.requests[20].request_id
