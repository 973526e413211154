"""`messplus verify`: a sound database passes, and each kind of damage is found and named."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import yaml
from typer.testing import CliRunner, Result

from litellm_messplus.cli.main import app
from litellm_messplus.settings.load import VARIABLE
from litellm_messplus.status.report import LiveLevel
from litellm_messplus.upkeep import queues
from tests.support import statuses
from tests.support.configured_log import POLICIES, started
from tests.upkeep.conftest import Damage

URL = "http://127.0.0.1:4000"


def verify(*given: str | Path) -> Result:
    arguments = ["verify", *(str(each) for each in given)]
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})


def found(*given: str | Path) -> list[dict[str, str]]:
    findings: list[dict[str, str]] = json.loads(verify(*given, "--json").stdout)["findings"]
    return findings


def of(check: str, *given: str | Path) -> list[str]:
    """How that check went: each of its results once."""
    return sorted({each["outcome"] for each in found(*given) if each["check"] == check})


def wrong(*given: str | Path) -> str:
    """The one line of the one thing that is wrong, after the table."""
    result = verify(*given)
    assert result.exit_code == 1, result.output
    (line,) = [line for line in result.output.splitlines() if line.startswith("messplus: ")]
    return line


def refusal(*given: str | Path) -> str:
    result = verify(*given)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 1
    text = str(result.exception.code)
    assert text.startswith("messplus: ")
    assert "\n" not in text
    return text


def test_a_sound_database_passes(database: Path, config: Path) -> None:
    result = verify("--config", config)

    assert result.exit_code == 0, result.output
    assert "wrong" not in result.output
    for zoo in POLICIES:
        assert f"{zoo}: the snapshot at" in result.output
    assert result.output.count("is the fold of the log, to the bit") == len(POLICIES)


def test_a_table_that_was_changed_by_hand_is_named(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("ALTER TABLE labels ADD COLUMN mood TEXT")

    assert "schema: it has an unknown column labels.mood" in wrong("--database", database)


def test_without_a_configuration_the_fold_is_not_looked_at(database: Path) -> None:
    assert verify("--database", database).exit_code == 0
    assert of("file", "--database", database) == ["sound"]
    assert of("positions", "--database", database) == ["sound"]
    assert of("fold", "--database", database) == ["skipped"]


def test_json_says_the_same(database: Path, config: Path, damage: Damage) -> None:
    assert json.loads(verify("--config", config, "--json").stdout)["is_sound"] is True

    damage("DELETE FROM requests WHERE request_id = 'zoo3'")
    result = verify("--config", config, "--json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["is_sound"] is False


def test_nothing_is_changed(database: Path, config: Path) -> None:
    before = database.read_bytes()

    verify("--config", config)

    assert database.read_bytes() == before


def test_a_deleted_request_leaves_calls_without_one(
    database: Path, config: Path, damage: Damage
) -> None:
    damage("DELETE FROM requests WHERE request_id = 'zoo1'")

    result = verify("--config", config)

    assert result.exit_code == 1
    assert "calls without a request (zoo1.0" in result.output
    assert "restore the missing rows from a backup" in result.output
    assert "zoo: the snapshot at" in result.output
    assert "is not the fold of the log" in result.output


def test_a_label_without_its_request_is_found(database: Path, damage: Damage) -> None:
    damage("UPDATE labels SET request_id = 'gone', call_id = 'gone.0' WHERE label_id = 'zoo3-0'")

    assert "1 labels without a request (zoo3-0)" in wrong("--database", database)


def test_a_label_of_a_missing_call_is_found(database: Path, damage: Damage) -> None:
    damage("UPDATE labels SET call_id = 'zoo3.7' WHERE label_id = 'zoo3-0'")

    assert "1 labels whose call is not there (zoo3-0)" in wrong("--database", database)


def test_a_label_that_came_before_its_call_ended_is_no_damage(
    database: Path, damage: Damage, sums_follow: Callable[[], None]
) -> None:
    damage("DELETE FROM calls WHERE call_id = 'zoo3.0'")
    sums_follow()

    assert verify("--database", database).exit_code == 0
    assert of("references", "--database", database) == ["note", "sound"]


def test_a_label_of_another_requests_call_is_found(database: Path, damage: Damage) -> None:
    damage("UPDATE labels SET call_id = 'zoo1.0' WHERE label_id = 'zoo3-0'")

    told = wrong("--database", database)

    assert "1 labels of another request than their call (zoo3-0)" in told


def test_measured_energy_of_a_missing_call_is_found(database: Path, damage: Damage) -> None:
    damage(
        "INSERT INTO call_energy (call_id, position, request_id, measured_at, joules) "
        "SELECT 'zoo1.9', position + 1, 'zoo1', '2026-01-02 03:04:05', 1.0 FROM log_head"
    )
    damage("UPDATE log_head SET position = position + 1")

    assert "1 call_energy without a call (zoo1.9)" in wrong("--database", database)


def test_a_position_in_two_tables_is_found(database: Path, config: Path, damage: Damage) -> None:
    damage("UPDATE calls SET position = (SELECT MAX(position) FROM labels) WHERE call_id='zoo1.0'")

    told = wrong("--config", config)

    assert "more than one record is at position" in told
    assert "(calls and labels)" in told
    assert of("fold", "--config", config) == ["skipped"]


def test_a_head_below_the_last_position_is_found(database: Path, damage: Damage) -> None:
    damage("UPDATE log_head SET position = position - 3")

    told = wrong("--database", database)

    assert "log_head says that the log ends at" in told
    advice = told.partition("then: ")[2]
    damage(advice)  # what it says to do
    assert verify("--database", database).exit_code == 0


def test_a_log_without_its_head_is_found(database: Path, damage: Damage) -> None:
    damage("DELETE FROM log_head")

    advice = wrong("--database", database).partition("then: ")[2]

    damage(advice)
    assert verify("--database", database).exit_code == 0


def test_empty_positions_are_counted_and_no_damage(database: Path, damage: Damage) -> None:
    """As lessons leave them that were taken back."""
    damage("UPDATE log_head SET position = position + 5")

    result = verify("--database", database)

    assert result.exit_code == 0
    assert "5 of" in result.output
    assert "messplus teach --forget" in result.output


def test_a_snapshot_that_says_something_else_than_the_log_is_found(
    config: Path, damage: Damage, sums_follow: Callable[[], None]
) -> None:
    """As the database's rows were changed by hand, or the state in memory was wrong."""
    damage("UPDATE labels SET value = 1 - value WHERE label_id = 'zoo3-0'")
    sums_follow()

    told = wrong("--config", config)

    assert "zoo: the snapshot at" in told
    assert "is not the fold of the log (see " in told
    advice = told.partition("then: ")[2].partition(";")[0]
    damage(advice)
    assert verify("--config", config).exit_code == 0


def test_a_snapshot_whose_state_was_altered_is_found(
    database: Path, config: Path, damage: Damage
) -> None:
    with closing(sqlite3.connect(database)) as connection:
        (other,) = connection.execute("SELECT state FROM snapshots WHERE zoo = 'zoo'").fetchone()
    damage("UPDATE snapshots SET state = ? WHERE zoo = 'zoo'", other[:-100])

    assert "cannot be read" in wrong("--config", config)


def test_an_entry_that_cannot_be_folded_in_is_named(
    database: Path, config: Path, damage: Damage
) -> None:
    damage("DELETE FROM snapshots")
    damage("UPDATE requests SET features = x'0000803f' WHERE request_id = 'zoo3'")

    told = wrong("--config", config)

    assert "entries of the log cannot be folded in (Labelled at 8: ValueError features" in told


def test_a_row_that_is_no_entry_is_found(database: Path, config: Path, damage: Damage) -> None:
    damage("UPDATE requests SET features = x'0000803f00' WHERE request_id = 'zoo3'")

    assert "a row at one of the positions 1 to" in wrong("--config", config)


def test_lessons_taken_back_are_no_damage(database: Path, config: Path, damage: Damage) -> None:
    """A running proxy may write a snapshot that still holds them; no start goes on from it."""
    damage(
        "INSERT INTO lessons (lesson_id, position, batch, zoo, created_at, candidate, encoder, "
        "prompt_characters, value) SELECT 'x.1', position + 1, 'x', 'zoo', "
        "'2026-01-02 03:04:05', 'small', 'pair-1', 4, 1.0 FROM log_head"
    )
    damage("UPDATE log_head SET position = position + 1")
    damage("UPDATE snapshots SET position = (SELECT position FROM log_head) WHERE zoo = 'zoo'")

    assert "note" in of("snapshots", "--config", config)
    assert verify("--config", config).exit_code == 0


def test_a_snapshot_of_other_settings_is_not_compared(database: Path, config: Path) -> None:
    config.write_text(config.read_text().replace("policy: adaptive", "policy: paper"))

    assert verify("--config", config).exit_code == 0
    assert of("snapshots", "--config", config) == ["note", "sound"]


def test_a_snapshot_ahead_of_the_log_is_told(database: Path, config: Path, damage: Damage) -> None:
    damage("UPDATE snapshots SET position = position + 1000000 WHERE zoo = 'zoo'")

    assert verify("--config", config).exit_code == 0
    assert "was an older copy put back" in verify("--config", config).output


def test_a_damaged_page_is_one_line(database: Path, config: Path) -> None:
    pages = bytearray(database.read_bytes())
    pages[4096 * 60 : 4096 * 61] = b"\xff" * 4096
    database.write_bytes(pages)

    told = wrong("--config", config)

    assert "the file is damaged: " in told
    assert "restore the database from a backup" in told


def test_a_truncated_file_is_one_line(database: Path, config: Path) -> None:
    database.write_bytes(database.read_bytes()[:-60_000])

    told = refusal("--config", config)

    assert "is malformed" in told
    assert "restore it from a backup" in told


def test_what_is_no_database_is_one_line(tmp_path: Path) -> None:
    assert "there is no database at" in refusal("--database", tmp_path / "none.db")


def test_what_is_no_configuration_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    assert "allowed: a proxy_config.yaml" in refusal("--config", path)
    path.write_text("a: [1")
    assert "allowed: a proxy_config.yaml" in refusal("--config", path)
    path.write_text("- a")
    assert "allowed: a proxy_config.yaml" in refusal("--config", path)


def test_the_configurations_variables_are_filled_in(
    database: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = yaml.safe_load(config.read_text())
    url = given["messplus"]["database"]
    given["messplus"]["database"] = f"{VARIABLE}HISTORY"
    config.write_text(yaml.safe_dump(given))

    assert f"{VARIABLE}HISTORY" in refusal("--config", config)
    monkeypatch.setenv("HISTORY", url)
    assert verify("--config", config).exit_code == 0


LEVELS = [(zoo, level) for zoo in POLICIES for level in ("default", "gold")]


class RunningProxy:
    """Answers for its status with what ``queues`` gives for a zoo and level, at each look anew."""

    def __init__(self, config: Path) -> None:
        self.queues = dict.fromkeys(LEVELS, 0.0)
        self.looks = 0
        self._config = config

    def stands_where_the_log_ends(self) -> None:
        engines = asyncio.run(started(yaml.safe_load(self._config.read_text())))
        self.queues = {
            (zoo, level): engines[zoo].state.policy.queue(level) for zoo, level in LEVELS
        }

    def get(self, method: str, url: str, **how: Any) -> httpx.Response:
        self.looks += 1
        (level,) = statuses.status(live=LiveLevel(queue=0.0)).levels
        levels = tuple(
            replace(level, zoo=zoo, service_level=name, queue=queue)
            for (zoo, name), queue in self.queues.items()
        )
        return httpx.Response(200, json=replace(statuses.status(), levels=levels).as_dict())


@pytest.fixture
def proxy(config: Path, monkeypatch: pytest.MonkeyPatch) -> RunningProxy:
    running = RunningProxy(config)
    # A look takes a second of the clock, and nothing else does.
    monkeypatch.setattr(queues, "time", SimpleNamespace(monotonic=lambda: float(running.looks)))
    monkeypatch.setattr(queues, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(httpx, "request", running.get)
    return running


def test_a_proxy_that_owes_what_the_log_says(config: Path, proxy: RunningProxy) -> None:
    proxy.stands_where_the_log_ends()

    result = verify("--config", config, "--url", URL, "--key", "k")

    assert result.exit_code == 0, result.output
    assert result.output.count("the proxy's queue is the fold's") == len(LEVELS)
    assert proxy.looks == 1


def test_a_proxy_that_owes_something_else(config: Path, proxy: RunningProxy) -> None:
    proxy.stands_where_the_log_ends()
    proxy.queues["zoo", "gold"] += 1e-6

    told = wrong("--config", config, "--url", URL, "--key", "k")

    assert "zoo, gold: the proxy's queue is" in told
    assert "restart the proxy" in told
    assert proxy.looks > 1


def test_a_proxy_that_is_behind_is_waited_for(
    config: Path, proxy: RunningProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = proxy.get

    def get(method: str, url: str, **how: Any) -> httpx.Response:
        if proxy.looks == 2:
            proxy.stands_where_the_log_ends()
        return answer(method, url, **how)

    monkeypatch.setattr(httpx, "request", get)

    assert verify("--config", config, "--url", URL, "--key", "k").exit_code == 0
    assert proxy.looks == 3


def test_a_proxy_of_another_configuration(config: Path, proxy: RunningProxy) -> None:
    proxy.stands_where_the_log_ends()
    del proxy.queues["zoo", "gold"]

    told = wrong("--config", config, "--url", URL, "--key", "k")

    assert "zoo, gold: the proxy does not know this service level" in told


def test_a_proxy_that_does_not_answer_is_one_line(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(method: str, url: str, **how: Any) -> httpx.Response:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(httpx, "request", refuse)

    assert "no proxy answers on" in refusal("--config", config, "--url", URL, "--key", "k")


def test_a_proxy_is_not_asked_without_the_configuration() -> None:
    assert "--url needs --config" in refusal("--url", URL)


def test_sums_that_are_not_the_logs_are_named(database: Path, damage: Damage) -> None:
    assert of("sums", "--database", database) == ["sound"]

    damage("UPDATE request_sums SET cost = cost + 1 WHERE zoo = 'zoo' AND service_level = 'gold'")

    told = wrong("--database", database)
    assert told.startswith("messplus: sums: 1 of ")
    assert "request_sums 2026-01-02, zoo, gold, 0.6: cost is" in told


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE outcomes SET cost_largest = 9 WHERE request_id = 'zoo1'", "outcomes zoo1: cost_l"),
        ("UPDATE verdicts SET value = 0.5 WHERE request_id = 'zoo3'", "verdicts zoo3.0: value is"),
        ("DELETE FROM verdicts WHERE request_id = 'zoo3'", "verdicts zoo3.0: call_id is None"),
        ("UPDATE outcomes SET request_id = 'gone' WHERE request_id = 'zoo1'", "no request in the"),
    ],
)
def test_an_outcome_or_a_verdict_that_is_not_the_logs_is_named(
    database: Path, damage: Damage, change: str, said: str
) -> None:
    damage(change)

    assert said in wrong("--database", database)


def test_sums_know_requests_that_have_left_the_log(database: Path, damage: Damage) -> None:
    """Moved away with all that belongs to them, in the order of the log."""
    for table in ("labels", "calls", "requests", "verdicts", "outcomes"):
        damage(f"DELETE FROM {table} WHERE request_id = 'zoo3'")

    assert verify("--database", database).exit_code == 0
    assert of("sums", "--database", database) == ["note", "sound"]
    (note,) = [each["told"] for each in found("--database", database)
               if each["check"] == "sums" and each["outcome"] == "note"]  # fmt: skip
    assert note.startswith("1 requests and gradings of the sums are no longer in the log")


def test_sums_are_not_held_to_a_log_that_was_changed_by_hand(
    database: Path, damage: Damage
) -> None:
    damage("DELETE FROM requests WHERE request_id = 'zoo3'")

    assert of("sums", "--database", database) == ["skipped"]


def test_a_request_that_the_sums_have_missed_is_wrong(database: Path, damage: Damage) -> None:
    damage("UPDATE request_sums SET requests = requests - 1 WHERE zoo = 'zoo'")

    assert "in the log" in wrong("--database", database)
