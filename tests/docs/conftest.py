"""The seeded database that the SQL in the documentation runs on."""

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from math import sqrt

# LiteLLM asks the network for its price map when it is imported, unless it is told not to.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import pytest

from tests.support.history import History, make_history, write_history
from tests.support.switches import change_modes


@pytest.fixture(scope="session")
def recorded() -> History:
    return make_history()


@pytest.fixture(scope="session")
def database(
    tmp_path_factory: pytest.TempPathFactory, recorded: History
) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("docs") / "messplus.db"
    asyncio.run(write_history(f"sqlite+aiosqlite:///{path}", recorded, change_modes))
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    if not has_math(connection):  # as the page says: a library may be built without it
        connection.create_function("sqrt", 1, sqrt, deterministic=True)
    yield connection
    connection.close()


def has_math(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT sqrt(2.0)")
    except sqlite3.OperationalError:
        return False
    return True
