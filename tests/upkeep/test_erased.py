"""`messplus verify` of a database from which a key was erased: it is sound."""

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from litellm_messplus.upkeep import prune as pruning
from litellm_messplus.upkeep.erase import Owner, erase
from tests.upkeep.conftest import Damage


def test_a_database_without_the_key_is_sound(
    stored: Path, config: Path, damage: Damage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "SETTLE_SECONDS", 0.0)
    damage("UPDATE requests SET key_hash = 'hers' WHERE position % 3 = 0")
    found = asyncio.run(erase(str(stored), Owner(key="hers"), None))
    assert found.erased["old"] + found.erased["zoo"] > 10

    result = CliRunner().invoke(app, ["verify", "--config", str(config), "--json"])
    findings = json.loads(result.stdout)["findings"]
    assert result.exit_code == 0, findings
    told = [each["told"] for each in findings if each["check"] == "snapshots"]
    assert ["to the bit" in each for each in told] == [True, True]
    assert {each["outcome"] for each in findings if each["check"] == "sums"} == {"sound"}
