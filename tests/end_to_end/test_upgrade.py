"""A database of the first release, with a real history, is upgraded by docs/upgrade.md: two workers
start on it at once, one migrates, and both serve on what was learned."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, make_url
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from litellm_messplus.store import schema
from tests.support.both_databases import either_url, server
from tests.support.patience import until
from tests.support.proxy import Proxy, ask, zoo_config
from tests.support.upstream import Upstream

pytestmark = pytest.mark.end_to_end

__all__ = ["either_url", "server"]

FIRST = "0001"
BEFORE = 6
DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
"""What opens a database outside of an event loop; psycopg comes with LiteLLM's proxy."""


def opened(url: str) -> Engine:
    parts = make_url(url)
    return create_engine(parts.set(drivername=DRIVERS[parts.get_backend_name()]))


def as_the_first_release_left_it(url: str) -> None:
    """Take every later migration back, and what it noted: the tables are then those of the first
    release, and the history in them that of a real proxy."""
    scripts = list(ScriptDirectory.from_config(schema.migrations_config()).walk_revisions())
    engine = opened(url)
    with engine.begin() as connection, Operations.context(MigrationContext.configure(connection)):
        for script in scripts:
            if script.revision != FIRST:
                script.module.downgrade()
        # Its snapshots are of a format that is not read any more: the log is folded again.
        connection.exec_driver_sql("DELETE FROM snapshots")
        connection.exec_driver_sql(f"DELETE FROM schema_history WHERE revision > '{FIRST}'")
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{FIRST}'")
    engine.dispose()


def satisfied(client: Any, answer: Any) -> str:
    """The outcome of a verdict on an answer."""
    body = {"id": answer.json()["id"], "satisfied": True}
    return str(client.post("/messplus/feedback", json=body).raise_for_status().json()["outcome"])


def routes(worker: Proxy) -> bool:
    """Whether a proxy is there, and its plugin has joined."""
    if not worker.is_ready():
        return False
    with worker.client() as client:
        return "routing" in client.get("/messplus/ready").text


def messplus(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    engine = opened(url)
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.exec_driver_sql(query)]
    engine.dispose()
    return found


def test_two_workers_upgrade_it_and_serve_on_what_it_knows(
    upstream: Upstream, tmp_path: Path, either_url: str
) -> None:
    config = zoo_config(upstream.url, tmp_path, zoo={"alpha": 0.7})
    config["messplus"]["database"] = either_url
    old = Proxy(config, tmp_path).start()
    with old.client() as client:
        answers = [ask(client, f"question {number}") for number in range(BEFORE)]
        assert {satisfied(client, answer) for answer in answers[:-1]} == {"counted"}
    old.stop()
    as_the_first_release_left_it(either_url)
    checked = messplus("check", "--config", str(tmp_path / "config.yaml"))
    assert f"the start migrates the database from {FIRST}" in checked

    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    workers = [Proxy(config, folder) for folder in folders]
    try:
        for worker in workers:
            worker.launch()
        for worker in workers:
            until(partial(routes, worker))
            with worker.client() as client:
                answer = ask(client, "after the upgrade")
                assert "x-messplus-model" in answer.headers
                assert satisfied(client, answer) == "counted"
        with workers[0].client() as client:
            assert satisfied(client, answers[-1]) == "counted"
    finally:
        for worker in workers:
            worker.stop()

    revisions = [row[0] for row in rows(either_url, "SELECT revision FROM schema_history")]
    assert sorted(revisions) == sorted(schema.digests())
    assert rows(either_url, "SELECT COUNT(*) FROM requests") == [(BEFORE + len(workers),)]
    verified = messplus("verify", "--config", str(tmp_path / "config.yaml"), "--json")
    assert json.loads(verified)["is_sound"]
