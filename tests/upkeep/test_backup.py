"""A backup is taken and restored by the commands of docs/upgrade.md, and nothing is lost of it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.markdown import ROOT, Document
from tests.support.shell import run

PAGE = Document(ROOT / "docs" / "upgrade.md")
BACKUP, RESTORE = "A backup on SQLite", "A restore on SQLite"


def history(path: Path) -> dict[str, list[Any]]:
    """Every row of the log, and the snapshots of its state."""
    tables = ("requests", "calls", "labels", "log_head", "snapshots")
    with closing(sqlite3.connect(path)) as connection:
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}


def test_a_backup_amid_writes_is_restored_whole(stored: Path, config: Path) -> None:
    before = history(stored)
    assert len(before["labels"]) > 10
    with closing(sqlite3.connect(stored)) as writer:  # as a proxy has it open
        writer.execute("UPDATE log_head SET start = 0")
        writer.execute(
            "INSERT INTO log_head (id, position, conversation_key) VALUES (2, 0, 'never')"
        )

        run(PAGE, BACKUP, stored.parent, {})

        writer.rollback()
        writer.execute("DELETE FROM labels")
        writer.commit()
        run(PAGE, RESTORE, stored.parent, {})

    assert history(stored) == before
    assert not Path(f"{stored}-wal").exists()


def test_a_file_that_is_damaged_is_replaced_by_its_backup(stored: Path, config: Path) -> None:
    before = history(stored)
    run(PAGE, BACKUP, stored.parent, {})
    with stored.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096 * 20)
    with pytest.raises(sqlite3.DatabaseError):
        history(stored)

    run(PAGE, RESTORE, stored.parent, {})

    assert history(stored) == before
