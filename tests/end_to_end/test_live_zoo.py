"""Models that come and go through LiteLLM's own reconcile code, on two real proxies over one
database."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.patience import until
from tests.support.proxy import Proxy, ask, zoo_config
from tests.support.reconciling import CALLBACK, MODULE, reconcile, stored, sweep
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

ADOPTED_WITHIN = 600
"""Requests until a newcomer serves. One in twenty tries it, by chance; about six tries show that
unseen answers get no labels here, and five labels settle it: 220 in the mean, and Poisson's law
allows fewer than eleven tries in 600 in one run of 50,000."""


@pytest.fixture(scope="module")
def proxies(upstream: Upstream, folder: Path) -> Iterator[tuple[Proxy, Proxy]]:
    """Two proxies on one database."""
    upstream.script = lambda model, body: Reply()
    with ExitStack() as running:
        started = []
        for name in ("first", "second"):
            own = folder / name
            own.mkdir()
            config = zoo_config(upstream.url, folder, zoo={"alpha": 0.7})
            config["litellm_settings"]["callbacks"].append(CALLBACK)
            (own / "reconciling.py").write_text(MODULE)
            proxy = Proxy(config, own)
            proxy.launch()
            running.callback(proxy.stop)
            started.append(proxy)
        for proxy in started:
            until(proxy.is_ready, lambda: started[0].log[-4000:])
        yield started[0], started[1]


def events(proxy: Proxy, client: httpx.Client) -> list[tuple[str, str]]:
    """What became of the models, as the status says, the newest first."""
    found = client.get("/messplus/status").json()["candidates"]
    return [(each["candidate"], each["change"]) for each in found]


def test_a_model_comes_is_adopted_and_goes_on_both_proxies(
    proxies: tuple[Proxy, Proxy], upstream: Upstream
) -> None:
    first, second = proxies
    new = stored("new", upstream.url, 1e-7)
    with first.client() as one, second.client() as other:
        for _ in range(40):
            assert ask(one).status_code == 200
        assert events(first, one) == []

        reconcile(one, [new])
        until(lambda: events(first, one) != [], lambda: first.log)
        assert events(first, one) == [("openai/new", "appeared")]

        asked = adopted_after(one)
        print(f"adopted after {asked} requests")
        assert asked <= ADOPTED_WITHIN

        # LiteLLM tells the second proxy up to half a minute later; it has the same zoo already.
        reconcile(other, [new])
        assert adopted_after(other) <= 20
        sweep(other)
        assert events(second, other) == [("openai/new", "appeared")]

        reconcile(one, [])
        gone = [("openai/new", "gone"), ("openai/new", "appeared")]
        until(lambda: events(second, other) == gone, lambda: second.log)
        # Until the second has folded it in, whose router has the model still.
        until(lambda: "openai/new" not in [served_by(other) for _ in range(5)])
        for client in (one, other):
            served = [served_by(client) for _ in range(15)]
            assert "openai/new" not in served

        reconcile(other, [])
        sweep(other)
        assert events(first, one) == gone
        for client in (one, other):
            counters = client.get("/messplus/health").json()
            assert "routing_failures" not in counters
            assert "live_zoo_failures" not in counters


def served_by(client: httpx.Client) -> str:
    """The model that served one request, with which its user is satisfied."""
    answer = ask(client)
    assert answer.status_code == 200
    said = {"id": answer.headers["x-litellm-call-id"], "satisfied": True}
    assert client.post("/messplus/feedback", json=said).status_code == 200
    return str(answer.headers["x-messplus-model"])


def adopted_after(client: httpx.Client) -> int:
    """How many requests it takes until the new model serves nine of ten."""
    served: list[Any] = []
    while len(served) < ADOPTED_WITHIN + 10:
        served.append(served_by(client))
        if served[-10:].count("openai/new") >= 9:
            return len(served) - 10
    return len(served)
