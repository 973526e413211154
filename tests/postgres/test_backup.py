"""A dump is taken and restored by the commands of docs/upgrade.md, and nothing is lost of it."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.configured_log import configuration, write_log
from tests.support.markdown import ROOT, Document
from tests.support.postgres import USER, Postgres, query
from tests.support.shell import run

PAGE = Document(ROOT / "docs" / "upgrade.md")


def history(url: str) -> dict[str, list[Any]]:
    """Every row of the log, and the snapshots of its state."""
    tables = ("requests", "calls", "labels", "log_head", "snapshots")
    return {name: query(url, f"SELECT * FROM {name} ORDER BY 1, 2") for name in tables}


def test_a_dump_is_restored_into_a_new_database_and_verified(
    server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{server.programs}{os.pathsep}{os.environ['PATH']}")
    url = server.database()
    asyncio.run(write_log(url))
    before = history(url)
    (tmp_path / "proxy_config.yaml").write_text(yaml.safe_dump(configuration(url)))
    name = url.rpartition("/")[2]
    replaced = {
        "messplus@db.example.com": f"{USER}@127.0.0.1:{server.port}",
        "/messplus_restored": f"/{name}_restored",
        " messplus_restored": f" {name}_restored",
        f":{server.port}/messplus": f":{server.port}/{name}",
    }

    run(PAGE, "A backup on Postgres", tmp_path, replaced)
    query(url, "DROP TABLE requests CASCADE")
    run(PAGE, "A restore on Postgres", tmp_path, replaced)

    assert history(f"{url}_restored") == before
