"""The proxy of the compose file, started as it says on a real Postgres, but without its images: it
becomes healthy by the file's own check, and has its tables in Postgres."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import make_url

from litellm_messplus.store import schema
from tests.support.both_databases import server
from tests.support.markdown import ROOT
from tests.support.ports import free_port
from tests.support.postgres import Postgres, query
from tests.support.shipped import serve_and_stop

pytestmark = pytest.mark.end_to_end

__all__ = ["server"]

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))
PROXY = COMPOSE["services"]["proxy"]
LITELLM = Path(sys.executable).parent / "litellm"
"""What the entry point of LiteLLM's image starts, with the arguments of `command`."""


def test_it_becomes_healthy_with_its_history_in_postgres(server: Postgres, tmp_path: Path) -> None:
    port, database = str(free_port()), make_url(server.database())
    name = PROXY["configs"][0]["target"]
    config = tmp_path / "proxy_config.yaml"
    config.write_text(COMPOSE["configs"]["proxy_config"]["content"])
    places = {name: str(config), "4000": port, "/app/.venv/bin/python": sys.executable}
    secrets = {"LITELLM_MASTER_KEY": f"sk-{'5' * 32}", "POSTGRES_PASSWORD": "none"}
    given = {key: filled(value, secrets) for key, value in PROXY["environment"].items()}
    at_host = make_url(given["MESSPLUS_DATABASE"])
    assert at_host.host in COMPOSE["services"]
    given["MESSPLUS_DATABASE"] = database.render_as_string(hide_password=False)

    check = [moved(word, places) for word in PROXY["healthcheck"]["test"][1:]]
    words = [str(LITELLM), *(moved(word, places) for word in PROXY["command"])]
    serve_and_stop(words, tmp_path, given, tmp_path / "log", lambda: is_healthy(check))

    (migrated,) = query(given["MESSPLUS_DATABASE"], "SELECT version_num FROM alembic_version")
    assert migrated["version_num"] == schema.newest()


def filled(value: str, secrets: dict[str, str]) -> str:
    """A value with the variables that the file demands, as Compose fills them in."""
    return re.sub(r"\$\{(\w+)[^}]*\}", lambda found: secrets[found[1]], value)


def moved(word: str, places: dict[str, str]) -> str:
    """A word of a command, with what is elsewhere here."""
    for there, here in places.items():
        word = word.replace(there, here)
    return word


def is_healthy(check: list[str]) -> bool:
    return subprocess.run(check, capture_output=True, check=False).returncode == 0
