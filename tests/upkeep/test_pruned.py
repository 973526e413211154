"""`messplus verify` of a database that was pruned, or of which a key was erased: it is sound."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from litellm_messplus.upkeep import prune as pruning
from litellm_messplus.upkeep.erase import Owner, erase
from tests.support.configured_log import configuration, sqlite
from tests.upkeep.conftest import Damage

DATE = datetime(2026, 1, 10, tzinfo=UTC)


@pytest.fixture
def pruned(stored: Path) -> Path:
    found = asyncio.run(pruning.prune(str(stored), DATE, None))
    assert found.rows["requests"] > 20
    return stored


def verify(config: Path) -> tuple[int, list[dict[str, Any]]]:
    result = CliRunner().invoke(app, ["verify", "--config", str(config), "--json"])
    return result.exit_code, json.loads(result.stdout)["findings"]


def text_of(findings: list[dict[str, Any]], check: str) -> str:
    return "; ".join(each["told"] for each in findings if each["check"] == check)


def test_a_pruned_database_is_sound(pruned: Path, config: Path) -> None:
    status, findings = verify(config)
    assert status == 0, findings
    assert "zoo: the fold begins at" in text_of(findings, "bases")
    assert "are pruned" in text_of(findings, "positions")
    assert text_of(findings, "snapshots").count("to the bit") == 2


def test_a_changed_label_after_the_base_is_found(
    pruned: Path, config: Path, damage: Damage
) -> None:
    damage("UPDATE snapshots SET position = (SELECT position FROM log_head) WHERE zoo = 'old'")
    status, findings = verify(config)
    assert status == 1
    assert "is not the fold of the log" in text_of(findings, "snapshots")


def test_a_base_that_does_not_fit_is_named(pruned: Path, config: Path) -> None:
    changed = configuration(sqlite(pruned))
    changed["messplus"]["zoos"]["old"]["learning_rate"] = 0.5
    config.write_text(yaml.safe_dump(changed))
    status, findings = verify(config)
    assert status == 1
    assert "messplus.zoos.old.learning_rate" in text_of(findings, "bases")


def test_rows_that_a_prune_left_are_noted(pruned: Path, config: Path, damage: Damage) -> None:
    damage("UPDATE log_head SET start = start + 40")
    _, findings = verify(config)
    assert "the next `messplus prune` deletes them" in text_of(findings, "positions")


def test_a_database_without_a_key_is_sound(stored: Path, config: Path, damage: Damage) -> None:
    damage("UPDATE requests SET key_hash = 'hers' WHERE position % 3 = 0")
    found = asyncio.run(erase(str(stored), Owner(key="hers"), None))
    assert found.erased["old"] + found.erased["zoo"] > 10

    status, findings = verify(config)

    assert status == 0, findings
    assert text_of(findings, "snapshots").count("to the bit") == 2
    assert {each["outcome"] for each in findings if each["check"] == "sums"} == {"sound"}
