"""`messplus verify`: a sound database passes, and each kind of damage is found and named."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from litellm_messplus.cli.main import app
from tests.upkeep.conftest import Damage


def verify(stored: Path, *given: str) -> Result:
    return CliRunner().invoke(app, ["verify", "--database", str(stored), *given])


def wrong(stored: Path) -> str:
    """The lines of what is wrong."""
    result = verify(stored)
    assert result.exit_code == 1, result.output
    lines = result.output.splitlines()
    assert all(line.startswith("messplus: ") for line in lines)
    assert json.loads(verify(stored, "--json").stdout)["is_sound"] is False
    return "\n".join(lines)


def refusal(stored: Path) -> str:
    """The one line of what cannot be read at all."""
    result = verify(stored)
    assert isinstance(result.exception, SystemExit), result.exception
    text = str(result.exception.code)
    assert text.startswith("messplus: ")
    assert "\n" not in text
    return text


def test_a_sound_database_passes_and_nothing_is_changed(stored: Path) -> None:
    before = stored.read_bytes()

    result = verify(stored)

    assert (result.exit_code, result.output) == (0, f"{stored} is sound\n")
    assert json.loads(verify(stored, "--json").stdout) == {
        "database": str(stored),
        "is_sound": True,
        "faults": [],
    }
    assert stored.read_bytes() == before


DAMAGES = {
    "1 labels without their request (zoo3-0)": (
        "UPDATE labels SET request_id = 'gone', call_id = 'gone.0' WHERE label_id = 'zoo3-0'"
    ),
    "1 labels without their call (zoo3-0)": (
        "UPDATE labels SET call_id = 'zoo3.7' WHERE label_id = 'zoo3-0'"
    ),
    "1 outcomes without their request (gone)": (
        "UPDATE outcomes SET request_id = 'gone' WHERE request_id = 'zoo1'"
    ),
    "more than one record is at position": (
        "UPDATE calls SET position = (SELECT MAX(position) FROM labels) WHERE call_id = 'zoo1.0'"
    ),
    "there is a record at -4, and positions begin at 1": (
        "UPDATE requests SET position = -4 WHERE request_id = 'zoo1'"
    ),
    "positions have no record": "DELETE FROM labels WHERE label_id = 'zoo3-0'",
}


@pytest.mark.parametrize("text", DAMAGES)
def test_what_was_changed_by_hand_is_named(stored: Path, damage: Damage, text: str) -> None:
    damage(DAMAGES[text])

    assert text in wrong(stored)


def test_a_deleted_request_leaves_rows_without_one(stored: Path, damage: Damage) -> None:
    damage("DELETE FROM requests WHERE request_id = 'zoo1'")

    found = wrong(stored)

    assert "calls without their request (zoo1.0" in found
    assert "restore the database from a backup" in found


@pytest.mark.parametrize("change", ["UPDATE log_head SET position = position - 3",
                                    "DELETE FROM log_head"])  # fmt: skip
def test_another_end_is_found_and_mended(stored: Path, damage: Damage, change: str) -> None:
    damage(change)

    damage(wrong(stored).partition("then: ")[2])

    assert verify(stored).exit_code == 0


def test_a_call_that_has_not_ended_is_no_damage(stored: Path, damage: Damage) -> None:
    """Its label may be there: a killed proxy leaves it so."""
    damage("DELETE FROM calls WHERE call_id = 'zoo3.0'")
    damage("UPDATE log_head SET start = 1")  # so that empty positions are none

    assert verify(stored).exit_code == 0


def test_a_damaged_file_is_one_line(stored: Path) -> None:
    with closing(sqlite3.connect(stored)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'labels'"
        ((page,),) = connection.execute(query).fetchall()
    whole = stored.read_bytes()
    stored.write_bytes(whole[: 4096 * (page - 1)] + b"\xff" * 4096 + whole[4096 * page :])
    text = wrong(stored)
    assert "the file is damaged: " in text
    assert "restore the database from a backup" in text

    stored.write_bytes(whole[:-60_000])
    assert "is malformed" in refusal(stored)
    assert "restore it from a backup" in refusal(stored)


def test_what_is_no_database_is_one_line(tmp_path: Path) -> None:
    assert "there is no database at" in refusal(tmp_path / "nothing.db")
