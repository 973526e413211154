"""The page on a real proxy: by a link, in LiteLLM's own session, and for who may see nothing."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from tests.support.patience import PATIENT
from tests.support.proxy import Proxy, ask, zoo_config
from tests.support.upstream import Upstream

pytestmark = pytest.mark.end_to_end

PROMISE = {"zoo": "zoo", "service_level": "default"}


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, folder: Path) -> Iterator[Proxy]:
    running = Proxy(zoo_config(upstream.url, folder, zoo={"alpha": 0.6}), folder).start()
    yield running
    running.stop()


@pytest.fixture
def visitor(proxy: Proxy) -> Iterator[httpx.Client]:
    """A browser without a key."""
    with httpx.Client(base_url=f"{proxy.url}/messplus/ui/", timeout=PATIENT) as client:
        yield client


def link(proxy: Proxy, *more: str) -> str:
    result = CliRunner().invoke(
        app, ["status", "--ui", "--url", proxy.url, "--key", proxy.master_key, *more]
    )
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output.strip()


def test_a_link_signs_in_and_shows_what_was_routed(proxy: Proxy, visitor: httpx.Client) -> None:
    with proxy.client() as client:
        given = ask(client).json()["id"]
        sent = client.post("/messplus/feedback", json={"id": given, "satisfied": True})
        assert sent.status_code == 200
    address, _, code = link(proxy).partition("#code=")
    assert address == f"{proxy.url}/messplus/ui/"

    assert visitor.get("data/overview").status_code == 401
    assert visitor.post("session", json={"code": code}).status_code == 204
    (level,) = visitor.get("data/overview").json()["levels"]
    points = visitor.get("data/series", params={**PROMISE, "days": 1}).json()["points"]
    (row,) = visitor.get("data/requests", params=PROMISE).json()["requests"]
    found = visitor.get(f"data/requests/{row['request_id']}").json()

    assert level["overall"]["satisfaction"]["rate"] == 1.0
    assert sum(point["judged"] for point in points) == 1
    assert row["satisfaction"] == 1.0
    assert found["candidates"]
    assert visitor.get("data/details", params=PROMISE).status_code == 200
    assert visitor.post("session", json={"code": code}).status_code == 401


def test_who_is_signed_in_to_litellm_is_signed_in_here(proxy: Proxy, visitor: httpx.Client) -> None:
    """LiteLLM's dashboard keeps the key of the session in its cookie."""
    for key, status in ((proxy.master_key, 200), ("sk-nobodys", 400)):
        claims = json.dumps({"key": key, "user_role": "proxy_admin"})
        body = urlsafe_b64encode(claims.encode()).decode().rstrip("=")
        cookie = {"cookie": f"token=header.{body}.signature"}

        assert visitor.get("data/overview", headers=cookie).status_code == status
        elsewhere = {**cookie, "origin": "https://evil.example"}
        assert visitor.get("data/overview", headers=elsewhere).status_code == 401


def test_who_is_signed_in_changes_a_mode(proxy: Proxy, visitor: httpx.Client) -> None:
    visitor.post("session", json={"code": link(proxy).partition("#code=")[2]}).raise_for_status()
    zoo = visitor.get("data/zoos/zoo").json()
    wanted = {"revision": zoo["revision"], "mode": "on", "reason": "looked at"}

    elsewhere = visitor.patch("data/zoos/zoo", json=wanted, headers={"origin": "https://evil"})
    here = visitor.patch("data/zoos/zoo", json=wanted, headers={"sec-fetch-site": "same-origin"})

    assert elsewhere.status_code == 401
    assert here.status_code == 200
    assert here.json()["revision"] == zoo["revision"] + 1
    with proxy.client() as client:
        assert client.get("/messplus/zoos/zoo").json()["reason"] == "looked at"


def test_a_browser_without_a_key_is_led_to_the_page(proxy: Proxy) -> None:
    status = f"{proxy.url}/messplus/status"
    browser = {"accept": "text/html,*/*"}
    answer = httpx.get(status, headers=browser, follow_redirects=True, timeout=PATIENT)

    assert answer.status_code == 200
    assert str(answer.url) == f"{proxy.url}/messplus/ui/"
    assert "<title>MESS+ routing</title>" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert httpx.get(status, timeout=PATIENT).json() == {"detail": "no key was given"}


def test_nothing_failed(proxy: Proxy) -> None:
    with proxy.client() as client:
        assert client.get("/messplus/health").json() == {}
