"""What a user's word weighs where unsatisfied users answer more often."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.proxy import Proxy, ask, zoo_config
from tests.support.upstream import Upstream

pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    zoo = {"alpha": 0.7, "response_bias": 3.0}
    running = Proxy(zoo_config(upstream.url, folder, zoo=zoo), folder).start()
    yield running
    running.stop()


def test_a_stated_bias_is_part_of_each_labels_weight(proxy: Proxy) -> None:
    with proxy.client() as client:
        for satisfied in (True, False):
            request_id = ask(client).headers["x-messplus-request-id"]
            verdict = {"id": request_id, "satisfied": satisfied}
            client.post("/messplus/feedback", json=verdict).raise_for_status()

    query = "SELECT value, weight FROM labels"
    assert {row["value"]: row["weight"] for row in proxy.rows(query)} == {1.0: 1.5, 0.0: 0.5}
