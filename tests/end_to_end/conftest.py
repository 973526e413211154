"""Real upstreams and real proxies; one of each a module, for a start takes seconds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.upstream import Upstream


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    serving = Upstream()
    serving.start()
    yield serving
    serving.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("proxy")
