"""Whatever is sent to our routes, they answer as their description says, and write whole rows."""

import re
from collections import Counter
from contextlib import suppress
from urllib.parse import quote

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.schemas import APIOperation

from litellm_messplus.page.routes import PATH
from tests.support.faults import Fault, Row, conclude
from tests.support.http_page import HTTP
from tests.support.load import Load
from tests.support.markdown import ROOT, Document, code_of
from tests.support.patience import PATIENT
from tests.support.proxy import ask
from tests.support.warm_start import WarmProxy

pytestmark = pytest.mark.faults

EXAMPLES = 15
"""Of each route, with what its description allows, and as many with what it does not."""
UNKNOWN_EVERY = 8
"""So seldom an id is sent as it was made up: an unknown one is looked for a second long."""
SOME = 20
PAGE = Document(ROOT / "docs" / "page.md")
REFUSALS = {int(row.cells["Status"]) for row in HTTP.under("Refusals")}
ANSWERS = {200, 204, 400} | REFUSALS - {503}
"""400 is FastAPI's word for a body that is no JSON."""
HOSTILE_IDS = [
    "x\0y",
    "../../health",
    "' OR 1=1 --",
    "x" * 5000,
    "\U0001f600",
    "%00",
    "resp_" + "A" * 600,
]
HOSTILE = [
    b"",
    b"null",
    b"[]",
    b"\xff\xfe",
    b'{"id": "\\ud800", "satisfied": true}',
    b'{"id": "x\\u0000y", "satisfied": true}',
    b'{"id": "x", "score": NaN}',
    b'{"id": "x", "score": 1e999}',
    b'{"id": "x", "score": ' + b"9" * 5000 + b"}",
    b'{"id": "x", "satisfied": true, "id": "y"}',
    b'{"id": {"$ne": null}, "satisfied": true}',
    b'{"id": "\' OR 1=1 --", "satisfied": true}',
    b'{"id": "' + b"x" * 100_000 + b'", "satisfied": true}',
    b'{"id": "x", "satisfied": true, "comment": "' + "😀".encode() * 10_001 + b'"}',
    b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
]
"""Bodies that no client of good will sends."""


def test_our_routes_take_whatever_is_sent(proxy: WarmProxy, rows: list[Row]) -> None:
    """Every status is one of those that the page on HTTP lists, and none a server's failure."""
    proxy.start()
    with proxy.client("sk-operator") as client:
        operations = described_operations(client)
        known = ask(client).headers["x-messplus-request-id"]
        with Load(proxy) as load:
            load.until_acknowledged(SOME)
            statuses = send_all(client, operations, known)
            load.until_acknowledged(SOME)
        about = [client.get(f"/messplus/{page}").status_code for page in ("status", "health")]
    proxy.stop()

    told = ", ".join(f"{count} got {status}" for status, count in sorted(statuses.items()))
    conclude(rows, Fault.HOSTILE, proxy, load, told)
    assert set(statuses) <= ANSWERS
    assert {200, 404, 422} <= set(statuses)
    assert about == [200, 200]
    assert proxy.rows("SELECT 1 FROM labels WHERE value NOT BETWEEN 0 AND 1") == []


def described_operations(client: httpx.Client) -> list[APIOperation]:
    """Our routes, as the proxy's own description has them; LiteLLM makes it for seconds. They are
    those that the pages describe, which the tests of the pages hold to the code."""
    described = client.get("/openapi.json").json()
    described["paths"] = {
        path: route for path, route in described["paths"].items() if path.startswith("/messplus")
    }
    schema = schemathesis.openapi.from_dict(described)
    operations = [found.ok() for found in schema.get_all_operations()]
    found = {f"{each.method.upper()} {re.sub('{.*}', '{id}', each.path)}" for each in operations}
    shown = (code_of(row.cells["Route"]) or "" for row in PAGE.under("Its routes"))
    assert found == {name for name in HTTP.headings if "/messplus/" in name} | {
        route.replace(" ", f" {PATH}", 1) for route in shown
    }
    return operations


def send_all(client: httpx.Client, operations: list[APIOperation], known: str) -> Counter[int]:
    """To every route what its description allows, what it does not, and what it is silent on.

    ``known`` is a request's id: most of what is sent names it, to get further than a look-up.
    """
    statuses: Counter[int] = Counter()
    for operation in operations:
        for mode in GenerationMode.POSITIVE, GenerationMode.NEGATIVE:
            with suppress(
                Unsatisfiable
            ):  # a route that takes nothing cannot be sent the wrong thing
                send_generated(operation, mode, client, known, statuses)
    headers = {"content-type": "application/json"}
    for body in HOSTILE:
        answer = client.post("/messplus/feedback", content=body, headers=headers)
        statuses[answer.status_code] += 1
    for name in HOSTILE_IDS:
        statuses[client.get(f"/messplus/requests/{quote(name, safe='')}").status_code] += 1
    return statuses


def send_generated(
    operation: APIOperation,
    mode: GenerationMode,
    client: httpx.Client,
    known: str,
    statuses: Counter[int],
) -> None:
    """Examples of one route, the same ones in every run."""

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Case) -> None:
        if statuses.total() % UNKNOWN_EVERY:
            if isinstance(case.body, dict) and "id" in case.body:
                case.body["id"] = known
            if "given" in case.path_parameters:
                case.path_parameters["given"] = known
        answer = case.call(
            base_url=str(client.base_url), headers=dict(client.headers), timeout=PATIENT
        )
        statuses[answer.status_code] += 1

    send()
