"""A second answer in place of the first, from real vLLM servers."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.proxy import Proxy
from tests.support.readings import with_forced_reading
from tests.vllm.client import question
from tests.vllm.conftest import KEY, Servers
from tests.vllm.operator_config import ZOO, tiny_zoo_config

pytestmark = pytest.mark.vllm

SMALL, LARGE = "hosted_vllm/tiny-small", "hosted_vllm/tiny-large"
CALLS = "SELECT * FROM calls WHERE request_id = ? ORDER BY position"


@pytest.fixture(scope="module")
def proxy(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The small model serves, and an answer with digits goes on to the large one."""
    folder = tmp_path_factory.mktemp("proxy")
    config = tiny_zoo_config({name: server.url for name, server in servers.items()})
    config["messplus"]["zoos"][ZOO]["second_answer"] = "auto"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LITELLM_MASTER_KEY", KEY)
        running = Proxy(
            with_forced_reading(config, folder, first=SMALL, sign="digits", then=LARGE), folder
        )
        try:
            yield running.start()
        finally:
            running.stop()


def alone(servers: Servers, model: str, body: dict[str, object]) -> str:
    """What a server says without the proxy."""
    name = model.removeprefix("hosted_vllm/")
    answer = httpx.post(
        f"{servers[name].url}/v1/chat/completions", json={**body, "model": name}, timeout=60.0
    )
    said: str = answer.raise_for_status().json()["choices"][0]["message"]["content"]
    return said


def test_the_client_gets_the_answer_of_the_second_server_and_pays_for_both(
    client: httpx.Client, proxy: Proxy, servers: Servers
) -> None:
    body = question("sort: 52 97 11", temperature=0.0)
    wanted = alone(servers, LARGE, body)
    answer = client.post("/v1/chat/completions", json=body)

    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"] == wanted
    headers = answer.headers
    assert (headers["x-messplus-model"], headers["x-messplus-first-model"]) == (LARGE, SMALL)
    first, second = proxy.wait_for_rows(CALLS, 2, headers["x-messplus-request-id"])
    assert (first["role"], first["candidate"]) == ("replaced", SMALL)
    assert (second["role"], second["candidate"]) == ("served", LARGE)
    assert {first["cost_source"], second["cost_source"]} == {"measured"}
    assert answer.json()["usage"]["completion_tokens"] == second["completion_tokens"]
    query = "SELECT * FROM request_outcomes WHERE request_id = ?"
    (outcome,) = proxy.rows(query, headers["x-messplus-request-id"])
    assert outcome["cost"] == pytest.approx(first["cost"] + second["cost"])


def test_one_without_the_sign_is_kept(client: httpx.Client, proxy: Proxy, servers: Servers) -> None:
    body = question("reverse: kqzm", temperature=0.0)
    wanted = alone(servers, SMALL, body)
    answer = client.post("/v1/chat/completions", json=body)

    assert answer.json()["choices"][0]["message"]["content"] == wanted
    assert "x-messplus-first-model" not in answer.headers
    (call,) = proxy.wait_for_rows(CALLS, 1, answer.headers["x-messplus-request-id"])
    assert (call["role"], call["candidate"]) == ("served", SMALL)
    assert call["answer_said"] == 0.9
