"""A server dies and comes back; users notice neither."""

from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from tests.support.patience import until
from tests.support.proxy import Proxy
from tests.support.vllm_server import VllmServer
from tests.vllm.client import Client, question, served_by
from tests.vllm.conftest import Servers

pytestmark = pytest.mark.vllm

REQUESTS = 20


@pytest.fixture
def asking(client: httpx.Client) -> Client:
    return Client(client)


@pytest.fixture
def victim(asking: Client, servers: Servers) -> Iterator[VllmServer]:
    """The one that serves most; it is there again afterwards, whatever happens."""
    serving = Counter(served_by(asking.ask()) for _ in range(REQUESTS))
    server = servers[serving.most_common(1)[0][0]]
    yield server
    if not server.is_running:
        server.launch()
    server.wait_until_ready()


def chosen(proxy: Proxy, answers: list[httpx.Response]) -> list[str]:
    """What was decided for each of them, before any retry."""
    request_ids = [answer.headers["x-messplus-request-id"] for answer in answers]
    marks = ", ".join("?" * len(request_ids))
    rows = proxy.wait_for_rows(
        f"SELECT chosen FROM requests WHERE request_id IN ({marks})",
        len(request_ids),
        *request_ids,
    )
    return [row["chosen"].removeprefix("hosted_vllm/") for row in rows]


def test_users_are_answered_while_a_server_is_dead_and_it_serves_again_when_it_is_back(
    asking: Client, victim: VllmServer, proxy: Proxy
) -> None:
    victim.kill()

    answers = [asking.ask() for _ in range(REQUESTS)]

    assert [answer.status_code for answer in answers] == [200] * REQUESTS
    assert victim.name not in {served_by(answer) for answer in answers}
    assert chosen(proxy, answers).count(victim.name) > 0
    body = question("sort: 52 97 11", stream=True)
    with asking.http.stream("POST", "/v1/chat/completions", json=body) as stream:
        assert stream.status_code == 200
        assert "data: [DONE]" in list(stream.iter_lines())

    victim.launch()
    victim.wait_until_ready()

    until(lambda: served_by(asking.ask()) == victim.name, lambda: proxy.log[-4000:])
