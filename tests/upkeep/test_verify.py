"""`messplus verify`: a sound database passes, and each kind of damage is found and named."""

import asyncio
import json
from collections.abc import Callable
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
from litellm_messplus.upkeep import verify as verifying
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


def test_a_sound_database_passes_and_nothing_is_changed(stored: Path, config: Path) -> None:
    before = stored.read_bytes()

    result = verify("--config", config)

    assert result.exit_code == 0, result.output
    assert "wrong" not in result.output
    for zoo in POLICIES:
        assert f"{zoo}: the snapshot at" in result.output
    assert result.output.count("is the fold of the log, to the bit") == len(POLICIES)
    assert json.loads(verify("--config", config, "--json").stdout)["is_sound"] is True
    assert stored.read_bytes() == before


def test_without_a_configuration_the_fold_is_not_looked_at(stored: Path) -> None:
    assert verify("--database", stored).exit_code == 0
    assert {check: of(check, "--database", stored) for check in ("file", "positions", "fold")} == {
        "file": ["sound"],
        "positions": ["sound"],
        "fold": ["skipped"],
    }


DAMAGES = {
    "schema: it has an unknown column labels.mood": ["ALTER TABLE labels ADD COLUMN mood TEXT"],
    "1 labels without a request (zoo3-0)": [
        "UPDATE labels SET request_id = 'gone', call_id = 'gone.0' WHERE label_id = 'zoo3-0'"
    ],
    "1 labels whose call is not there (zoo3-0)": [
        "UPDATE labels SET call_id = 'zoo3.7' WHERE label_id = 'zoo3-0'"
    ],
    "1 labels of another request than their call (zoo3-0)": [
        "UPDATE labels SET call_id = 'zoo1.0' WHERE label_id = 'zoo3-0'"
    ],
    "1 call_energy without a call (zoo1.9)": [
        "INSERT INTO call_energy (call_id, position, request_id, measured_at, joules) "
        "SELECT 'zoo1.9', position + 1, 'zoo1', '2026-01-02 03:04:05', 1.0 FROM log_head",
        "UPDATE log_head SET position = position + 1",
    ],
    "more than one record is at position": [
        "UPDATE calls SET position = (SELECT MAX(position) FROM labels) WHERE call_id = 'zoo1.0'"
    ],
    "there is a record at -4; positions begin at 1": [
        "UPDATE requests SET position = -4 WHERE request_id = 'zoo1'"
    ],
    "log_head states that the log is pruned up to": ["UPDATE log_head SET start = position + 1"],
    "request_sums 2026-01-02, zoo, gold, 0.6: cost is": [
        "UPDATE request_sums SET cost = cost + 1 WHERE zoo = 'zoo' AND service_level = 'gold'"
    ],
    "sums: 2 of ": ["UPDATE request_sums SET requests = requests - 1 WHERE zoo = 'zoo'"],
    "outcomes zoo1: cost_largest is 9": [
        "UPDATE outcomes SET cost_largest = 9 WHERE request_id = 'zoo1'"
    ],
    "verdicts zoo3.0: value is 0.5": ["UPDATE verdicts SET value = 0.5 WHERE request_id = 'zoo3'"],
    "verdicts zoo3.0: call_id is None": ["DELETE FROM verdicts WHERE request_id = 'zoo3'"],
    "no request in the log": ["UPDATE outcomes SET request_id = 'gone' WHERE request_id = 'zoo1'"],
}
FOLDED = {
    "zoo: the snapshot at": ["UPDATE snapshots SET state = substr(state, 1, 400) "
                             "WHERE zoo = 'zoo'"],
    "entries of the log cannot be folded in (Labelled at 8: ValueError features": [
        "DELETE FROM snapshots",
        "UPDATE requests SET features = x'0000803f' WHERE request_id = 'zoo3'",
    ],
    "a row at one of the positions 1 to": [
        "UPDATE requests SET features = x'0000803f00' WHERE request_id = 'zoo3'"
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", [*DAMAGES, *FOLDED])
def test_what_was_changed_by_hand_is_named(
    stored: Path, config: Path, damage: Damage, text: str
) -> None:
    for change in DAMAGES.get(text) or FOLDED[text]:
        damage(change)

    where = ("--config", config) if text in FOLDED else ("--database", stored)

    assert text in wrong(*where)
    assert json.loads(verify(*where, "--json").stdout)["is_sound"] is False


def test_a_deleted_request_leaves_calls_without_one(
    stored: Path, config: Path, damage: Damage
) -> None:
    damage("DELETE FROM requests WHERE request_id = 'zoo1'")

    result = verify("--config", config)

    assert result.exit_code == 1
    for words in (
        "calls without a request (zoo1.0",
        "restore the missing rows from a backup",
        "zoo: the snapshot at",
        "is not the fold of the log",
    ):
        assert words in result.output
    assert of("sums", "--database", stored) == ["skipped"]


@pytest.mark.parametrize("change", ["UPDATE log_head SET position = position - 3",
                                    "DELETE FROM log_head"])  # fmt: skip
def test_a_log_with_another_end_is_found_and_the_advice_mends_it(
    stored: Path, config: Path, damage: Damage, change: str
) -> None:
    damage(change)

    damage(wrong("--database", stored).partition("then: ")[2])

    assert verify("--database", stored).exit_code == 0


def test_without_an_order_nothing_is_folded(config: Path, damage: Damage) -> None:
    damage("UPDATE calls SET position = (SELECT MAX(position) FROM labels) WHERE call_id='zoo1.0'")

    assert "(calls and labels)" in wrong("--config", config)
    assert of("fold", "--config", config) == ["skipped"]


def test_a_snapshot_that_says_something_else_than_the_log_is_found(
    config: Path, damage: Damage, sums_follow: Callable[[], None]
) -> None:
    """As the database's rows were changed by hand, or the state in memory was wrong."""
    damage("UPDATE labels SET value = 1 - value WHERE label_id = 'zoo3-0'")
    sums_follow()

    text = wrong("--config", config)

    assert "zoo: the snapshot at" in text
    assert "is not the fold of the log (see " in text
    damage(text.partition("then: ")[2].partition(";")[0])
    assert verify("--config", config).exit_code == 0


NO_DAMAGE = {
    "5 of": ["UPDATE log_head SET position = position + 5"],
    "are of served calls that have not ended": ["DELETE FROM calls WHERE call_id = 'zoo3.0'"],
    "was an older copy put back": [
        "UPDATE snapshots SET position = position + 1000000 WHERE zoo = 'zoo'"
    ],
    "holds lessons that were taken back": [
        "INSERT INTO lessons (lesson_id, position, batch, zoo, created_at, candidate, encoder, "
        "prompt_characters, value) SELECT 'x.1', position + 1, 'x', 'zoo', "
        "'2026-01-02 03:04:05', 'small', 'pair-1', 4, 1.0 FROM log_head",
        "UPDATE log_head SET position = position + 1",
        "UPDATE snapshots SET position = (SELECT position FROM log_head) WHERE zoo = 'zoo'",
    ],
    "1 requests and gradings of the sums are no longer in the log": [
        f"DELETE FROM {table} WHERE request_id = 'zoo3'"
        for table in ("labels", "calls", "requests", "verdicts", "outcomes")
    ],
}


@pytest.mark.parametrize("text", NO_DAMAGE)
def test_what_is_no_damage_is_noted(
    stored: Path, config: Path, damage: Damage, sums_follow: Callable[[], None], text: str
) -> None:
    for change in NO_DAMAGE[text]:
        damage(change)
    if "served calls" in text:
        sums_follow()
        damage("DELETE FROM snapshots")
    if "no longer in the log" in text:
        damage("DELETE FROM snapshots")

    result = verify("--config", config)

    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.output.splitlines() if text in line]
    assert " note " in line


def test_a_snapshot_of_other_settings_is_not_compared(config: Path) -> None:
    config.write_text(config.read_text().replace("policy: adaptive", "policy: paper"))

    assert verify("--config", config).exit_code == 0
    assert of("snapshots", "--config", config) == ["note", "sound"]


def test_a_damaged_file_is_one_line(stored: Path, config: Path) -> None:
    whole = stored.read_bytes()
    stored.write_bytes(whole[: 4096 * 60] + b"\xff" * 4096 + whole[4096 * 61 :])
    text = wrong("--config", config)
    assert "the file is damaged: " in text
    assert "restore the database from a backup" in text

    stored.write_bytes(whole[:-60_000])
    assert "is malformed" in refusal("--config", config)
    assert "restore it from a backup" in refusal("--config", config)


def test_what_is_no_database_and_no_configuration_is_one_line(tmp_path: Path) -> None:
    assert "there is no database at" in refusal("--database", tmp_path / "none.db")
    path = tmp_path / "other.yaml"
    assert "allowed: a proxy_config.yaml" in refusal("--config", path)
    for text in ("a: [1", "- a"):
        path.write_text(text)
        assert "allowed: a proxy_config.yaml" in refusal("--config", path)


def test_the_configurations_variables_are_filled_in(
    config: Path, monkeypatch: pytest.MonkeyPatch
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
    monkeypatch.setattr(verifying, "time", SimpleNamespace(monotonic=lambda: float(running.looks)))
    monkeypatch.setattr(verifying, "LOOK_SECONDS", 0.0)
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

    text = wrong("--config", config, "--url", URL, "--key", "k")

    assert "zoo, gold: the proxy's queue is" in text
    assert "restart the proxy" in text
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

    text = wrong("--config", config, "--url", URL, "--key", "k")

    assert "zoo, gold: the proxy does not know this service level" in text


def test_a_proxy_that_does_not_answer_is_one_line(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(method: str, url: str, **how: Any) -> httpx.Response:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(httpx, "request", refuse)

    assert "no proxy answers on" in refusal("--config", config, "--url", URL, "--key", "k")


def test_a_proxy_is_not_asked_without_the_configuration() -> None:
    assert "--url needs --config" in refusal("--url", URL)
