"""Real upstreams and real proxies; one of each a module, for a start takes seconds."""

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support import failures
from tests.support.proxy import Proxy
from tests.support.upstream import Upstream


@pytest.fixture(scope="session", autouse=True)
def each_failure_is_logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    first = tmp_path_factory.mktemp("first")
    (first / "sitecustomize.py").write_text(failures.LOG_EACH)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(first), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    serving = Upstream()
    serving.start()
    yield serving
    serving.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("proxy")


@pytest.fixture
def client(proxy: Proxy) -> Iterator[httpx.Client]:
    """A client of the module's own proxy."""
    with proxy.client() as connected:
        yield connected
