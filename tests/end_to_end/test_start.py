"""A configuration that cannot be honoured stops the start, with one message that says why."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from litellm_messplus.serving.litellm_fit import NEWEST, OLDEST
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from tests.support.builders import traffic
from tests.support.patience import PATIENT, until
from tests.support.proxy import Config, Proxy, ask, zoo_config
from tests.support.upstream import Upstream

pytestmark = pytest.mark.end_to_end


def unknown_key(config: Config, folder: Path) -> None:
    config["messplus"]["zoos"]["zoo"] = {"alpha": 0.7, "aplha": 0.7}


def no_deployment(config: Config, folder: Path) -> None:
    config["messplus"]["zoos"]["llamas"] = {"alpha": 0.7}


def no_such_folder(config: Config, folder: Path) -> None:
    config["messplus"]["database"] = f"sqlite+aiosqlite:///{folder}/missing/messplus.db"


def newer_database(config: Config, folder: Path) -> None:
    connection = sqlite3.connect(folder / "messplus.db")
    connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)")
    connection.execute("INSERT INTO alembic_version VALUES ('9999')")
    connection.commit()
    connection.close()


def migrated(folder: Path) -> Path:
    """A database of this version, with a log."""
    path = folder / "messplus.db"

    async def make() -> None:
        engine = create_engine(f"sqlite+aiosqlite:///{path}")
        await migrate(engine)
        await log.append(engine, traffic(200))
        await engine.dispose()

    asyncio.run(make())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def no_log_head(config: Config, folder: Path) -> None:
    with closing(sqlite3.connect(migrated(folder))) as connection:
        connection.execute("DELETE FROM log_head")
        connection.commit()


def corrupt_pages(config: Config, folder: Path) -> None:
    path = migrated(folder)
    with path.open("r+b") as file:
        file.seek(4096 * 60)
        file.write(b"\xff" * (path.stat().st_size - 4096 * 60))


def unset_variable(config: Config, folder: Path) -> None:
    config["messplus"]["seed"] = "os.environ/NOWHERE"


BUG = """
from litellm_messplus.serving import startup

startup.Parts = lambda *arguments, **named: {}["a\\nkey"]

from litellm_messplus.plugin import instance
"""


def bug(config: Config, folder: Path) -> None:
    (folder / "bug.py").write_text(BUG)
    config["litellm_settings"]["callbacks"] = ["bug.instance"]


def misplaced_section(config: Config, folder: Path) -> None:
    config["litellm_settings"]["messplus"] = config.pop("messplus")


@pytest.mark.parametrize(
    ("spoil", "key", "given", "allowed"),
    [
        (unknown_key, "messplus.zoos.zoo.aplha", "0.7", "did you mean `alpha`?"),
        (no_deployment, "messplus.zoos.llamas", "llamas", "(there: zoo)"),
        (no_such_folder, "messplus.database", "missing", "a file in a folder that is there"),
        (newer_database, "messplus.database", "messplus.db", "revision 9999 is not known"),
        (no_log_head, "messplus.database", "messplus.db", "log_head is empty"),
        (corrupt_pages, "messplus.database", "messplus.db", "restore it from a backup"),
        (unset_variable, "messplus.seed", "os.environ/NOWHERE", "a variable that is set"),
        (bug, "bug.py:4: ", "key", "without it"),
        (
            misplaced_section,
            "litellm_settings.messplus",
            "below `litellm_settings:`",
            "at the top level of the file",
        ),
    ],
)
def test_bad_configuration_stops_the_start(
    tmp_path: Path,
    spoil: Callable[[Config, Path], None],
    key: str,
    given: str,
    allowed: str,
) -> None:
    config = zoo_config("http://127.0.0.1:9/v1", tmp_path)
    spoil(config, tmp_path)
    proxy = Proxy(config, tmp_path)

    status = proxy.launch().wait(PATIENT)

    assert status != 0
    _, _, message = proxy.log.partition("messplus: the plugin cannot start: ")
    assert message.strip().count("\n") == 0
    assert "taken out of `litellm_settings.callbacks`" in message
    assert key in message
    assert given in message
    assert allowed in message
    assert "Traceback" not in proxy.log


CHANGED_LITELLM = """
from litellm.integrations.custom_logger import CustomLogger
from litellm.router_strategy import tag_based_routing


async def get_deployments_for_tag(*arguments, one_more, **named):
    raise AssertionError("never called")


tag_based_routing.get_deployments_for_tag = get_deployments_for_tag
instance = CustomLogger()
"""
"""A callback that is loaded before the plugin, and changes LiteLLM as a release of it might."""


def test_a_litellm_that_does_not_fit_stops_the_start_with_one_line(tmp_path: Path) -> None:
    config = zoo_config("http://127.0.0.1:9/v1", tmp_path)
    (tmp_path / "changed.py").write_text(CHANGED_LITELLM)
    config["litellm_settings"]["callbacks"].insert(0, "changed.instance")
    proxy = Proxy(config, tmp_path)

    status = proxy.launch().wait(PATIENT)

    assert status != 0
    _, _, message = proxy.log.partition("messplus: the plugin cannot start: ")
    (line,) = message.strip().splitlines()
    assert "in which get_deployments_for_tag is another" in line
    assert "'one_more'" in line
    assert f"allowed: {OLDEST} to {NEWEST}" in line


@pytest.mark.counts("brain_away", "database_awaited", "database_failures")
def test_a_database_that_is_away_at_the_start_is_joined_when_it_is_there(
    upstream: Upstream, tmp_path: Path
) -> None:
    """LiteLLM serves meanwhile as without the plugin."""
    path = migrated(tmp_path)
    with closing(sqlite3.connect(path)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        proxy = Proxy(zoo_config(upstream.url, tmp_path), tmp_path).start()
        try:
            with proxy.client() as client:
                answer = ask(client)
                assert answer.status_code == 200
                assert "x-messplus-model" not in answer.headers
                assert client.get("/messplus/health").status_code == 503
                assert "messplus_up 0.0" in client.get("/messplus/metrics").text
                ready = httpx.get(f"{proxy.url}/messplus/ready", timeout=PATIENT)  # without a key
                assert (ready.status_code, ready.text) == (503, "absent")
                unknown = {"id": answer.headers["x-litellm-call-id"], "satisfied": True}
                assert client.post("/messplus/feedback", json=unknown).status_code in (404, 503)

                holder.rollback()

                until(lambda: "x-messplus-model" in ask(client).headers, lambda: proxy.log)
                call_id = ask(client).headers["x-litellm-call-id"]
                judged = client.post("/messplus/feedback", json={"id": call_id, "satisfied": True})
                assert judged.status_code == 200
                alerts = client.get("/messplus/status").json()["alerts"]
                assert httpx.get(f"{proxy.url}/messplus/ready", timeout=PATIENT).text == "routing"
        finally:
            proxy.stop()

    assert any("database_awaited" in alert["message"] for alert in alerts)
    assert "starting without the database" in proxy.log
    assert "messplus:INFO: litellm-messplus" in proxy.log
    assert proxy.rows("SELECT COUNT(*) AS n FROM requests")[0]["n"] >= 202


@pytest.mark.counts("database_awaited")
def test_a_proxy_whose_database_never_comes_stops_as_it_should(
    upstream: Upstream, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(migrated(tmp_path))) as holder:
        holder.execute("BEGIN IMMEDIATE")
        proxy = Proxy(zoo_config(upstream.url, tmp_path), tmp_path).start()
        proxy.stop()

    told = proxy.log.partition("starting without the database")[2]
    assert "shutdown_failures" not in told
    assert "was never awaited" not in told
