"""Three real vLLM servers for all tests, and a proxy over them for each module."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.proxy import Config, Proxy
from tests.support.vllm_server import VllmServer
from tests.vllm.operator_config import ROOT, STAND_INS, tiny_zoo_config

MODELS = ROOT / "examples" / "tiny_zoo" / "models"
KEY = "sk-f1c0a7d9b2e84c53a6"
Servers = dict[str, VllmServer]


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """By the name of the model; they start at the same time, for each takes half a minute."""
    logs = tmp_path_factory.mktemp("vllm")
    serving = {name: VllmServer(MODELS / name, logs) for name in STAND_INS.values()}
    try:
        for server in serving.values():
            server.launch()
        for server in serving.values():
            server.wait_until_ready()
        yield serving
    finally:
        for server in serving.values():
            server.stop()


@pytest.fixture(scope="module")
def config(servers: Servers) -> Config:
    """The operator's configuration, with the tiny zoo's servers in it."""
    return tiny_zoo_config({name: server.url for name, server in servers.items()})


@pytest.fixture(scope="module")
def proxy(config: Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Started as the file says: the key in the environment, the database in the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LITELLM_MASTER_KEY", KEY)
        running = Proxy(config, tmp_path_factory.mktemp("proxy"))
        try:
            yield running.start()
        finally:
            running.stop()


@pytest.fixture
def client(proxy: Proxy) -> Iterator[httpx.Client]:
    with proxy.client(KEY) as connected:
        yield connected
