"""The command of the systemd unit, started as the unit says, on the example configuration."""

import shlex
import shutil
import sqlite3
from pathlib import Path

import httpx
import pytest

from tests.support.markdown import ROOT
from tests.support.ports import free_port
from tests.support.service_unit import moved, values
from tests.support.shipped import serve_and_stop

pytestmark = pytest.mark.end_to_end


def test_it_routes_and_a_stop_leaves_a_whole_database(tmp_path: Path) -> None:
    port = str(free_port())
    (command,) = values("ExecStart")
    assert "--port 4000" in command
    shutil.copy(ROOT / "proxy_config.yaml", tmp_path)
    (data := tmp_path / "data").mkdir()
    given = dict(
        pair.split("=", 1)
        for line in values("Environment")
        for pair in shlex.split(moved(line, tmp_path))
    )
    given = {"LITELLM_MASTER_KEY": f"sk-{'5' * 32}", **given}
    words = shlex.split(moved(command, tmp_path).replace("4000", port))
    serve_and_stop(words, data, given, tmp_path / "log", lambda: ready(port))

    with sqlite3.connect(data / "messplus.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def ready(port: str) -> bool:
    try:
        answer = httpx.get(f"http://127.0.0.1:{port}/messplus/ready", timeout=5)
    except httpx.TransportError:
        return False
    return answer.is_success and "routing" in answer.text
