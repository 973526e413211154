"""`messplus status`, as a user runs it."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest

from litellm_messplus.figures.figure import Plain
from tests.status.conftest import WINDOW, read
from tests.support.commands import refusal, shown
from tests.support.history import History, migrated

URL = "http://127.0.0.1:4000"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LITELLM_MASTER_KEY", raising=False)
    return tmp_path


def url_of(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


def test_json_of_a_database(seeded_log: Path) -> None:
    output = shown("status", "--database", url_of(seeded_log), "--window", str(WINDOW), "--json")

    assert json.loads(output) == read(seeded_log)


def test_the_tables_are_of_the_plain_status() -> None:
    assert "--full" in refusal("status", "--full", "--json")


def test_in_eighty_columns_no_name_and_no_figure_is_cut(seeded_log: Path) -> None:
    output = shown("status", "--database", seeded_log, "--full", columns=80)
    tables = output[output.index("service level default") :]

    assert "…" not in tables
    assert all(len(line) <= 80 for line in tables.splitlines())
    for each in read(seeded_log)["calibration"][0]["candidates"]:
        assert tables.count(each["candidate"]) > len(each["bins"])


def test_an_empty_database(elsewhere: Path) -> None:
    migrated(elsewhere / "messplus.db", History())

    assert shown("status").strip() == "no requests yet"


def test_the_default_is_in_var_then_here(elsewhere: Path, seeded_log: Path) -> None:
    migrated(elsewhere / "messplus.db", History())
    assert json.loads(shown("status", "--json"))["levels"] == []

    (elsewhere / "var").mkdir()
    shutil.copy(seeded_log, elsewhere / "var" / "messplus.db")
    assert len(json.loads(shown("status", "--json"))["levels"]) == 2


def test_a_file_that_is_not_there_is_not_made(elsewhere: Path) -> None:
    assert "there is no database at" in refusal("status")
    assert "no/such.db" in refusal("status", "--database", "sqlite+aiosqlite:///no/such.db")
    assert "allowed: a file" in refusal("status", "--database", "sqlite+aiosqlite://")
    refusal("status", "--database", "sqlite+aiosqlite:///other.db?timeout=3")
    refusal("status", "--database", "sqlite+aiosqlite:///file:other.db?uri=true")
    assert list(elsewhere.iterdir()) == []


def test_a_database_is_not_changed(elsewhere: Path, seeded_log: Path) -> None:
    copy = elsewhere / "messplus.db"
    shutil.copy(seeded_log, copy)
    before = copy.read_bytes()

    shown("status")

    assert copy.read_bytes() == before


def test_a_killed_proxy_leaves_a_readable_database(elsewhere: Path, seeded_log: Path) -> None:
    """What is only in the write-ahead log is read too."""
    original = elsewhere / "original.db"
    shutil.copy(seeded_log, original)
    writing = sqlite3.connect(original)
    writing.execute("UPDATE requests SET queue = 77.25")
    writing.commit()
    for suffix in ("", "-wal"):
        shutil.copy(f"{original}{suffix}", elsewhere / f"messplus.db{suffix}")
    writing.close()

    assert json.loads(shown("status", "--json"))["levels"][0]["queue"] == 77.25


def test_a_database_of_another_version(elsewhere: Path) -> None:
    path = elsewhere / "messplus.db"
    path.touch()
    assert "is not migrated to this version" in refusal("status")

    migrated(path, History())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    assert "9999 is not known" in refusal("status")


def test_what_is_no_database(elsewhere: Path) -> None:
    (elsewhere / "messplus.db").write_text("not a database, but long enough to look at " * 100)

    assert "cannot be read: file is not a database" in refusal("status")
    assert "file is not a database" in refusal("status", "--database", "messplus.db")
    assert "an SQLAlchemy URL" in refusal("status", "--database", "://messplus.db")
    assert "allowed: a URL of sqlite+aiosqlite" in refusal(
        "status", "--database", "mysql://a:secret@b/c"
    )
    assert "secret" not in refusal("status", "--database", "mysql://a:secret@b/c")


def test_one_source_at_a_time() -> None:
    assert "not both" in refusal("status", "--url", URL, "--database", "sqlite+aiosqlite:///a.db")


def answering(patch: pytest.MonkeyPatch, answer: httpx.Response | Exception) -> list[Any]:
    """Stand in for the network with this answer; return the requests."""
    requests: list[Any] = []

    def give(method: str, url: str, **how: Any) -> httpx.Response:
        requests.append((method, url, how["params"], how["headers"]))
        if isinstance(answer, Exception):
            raise answer
        return answer

    patch.setattr(httpx, "request", give)
    return requests


def test_a_running_proxy_is_asked(status: Plain, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = answering(monkeypatch, httpx.Response(200, json=status))
    output = shown("status", "--url", f"{URL}/", "--key", "sk-1", "--window", "50", "--json")

    assert json.loads(output) == status
    key = {"authorization": "Bearer sk-1"}
    assert requests == [("GET", f"{URL}/messplus/status", {"window": 50}, key)]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (httpx.Response(503), "answered 503"),
        (httpx.Response(200, text="<html>"), "is not a proxy with this version of the plugin"),
        (httpx.Response(200, json={"levels": 3}), "is not a proxy with this version of the plugin"),
        (httpx.ConnectError("refused"), "no proxy answers on"),
    ],
)
def test_what_a_proxy_may_say_instead(
    monkeypatch: pytest.MonkeyPatch, answer: httpx.Response | Exception, expected: str
) -> None:
    answering(monkeypatch, answer)
    assert expected in refusal("status", "--url", URL, "--key", "sk-1")


def test_a_proxy_is_not_asked_without_a_key() -> None:
    assert "no key" in refusal("status", "--url", URL)
