"""For every test: one thread of BLAS, as in the proxy and the replay; LiteLLM's prices as they are
installed, not fetched; tables as wide as a terminal that shows them whole.

With `--postgres`, the proxies of the end-to-end tests keep their history on a real Postgres.
"""

import os
from contextlib import ExitStack

import pytest
from threadpoolctl import threadpool_limits

from tests.support.postgres import missing, postgres_server
from tests.support.proxy import POSTGRES

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ["COLUMNS"] = "120"
threadpool_limits(limits=1, user_api="blas")

SERVER = pytest.StashKey[ExitStack]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--postgres", action="store_true", help="real proxies on a real Postgres, not on SQLite"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SERVER] = running = ExitStack()
    if not config.getoption("--postgres"):
        return
    if reason := missing():
        raise pytest.UsageError(f"--postgres: {reason}")
    os.environ[POSTGRES] = running.enter_context(postgres_server()).url()


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[SERVER].close()
