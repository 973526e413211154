"""What pages list is what the code has, and no other: one comparison for each list."""

import re
from collections.abc import Callable, Iterable
from typing import Any, cast

import pytest
import typer
from fastapi import APIRouter
from fastapi.routing import APIRoute

from benchmarks import certificate as simulated
from benchmarks import keys
from benchmarks.simulation.__main__ import agents
from benchmarks.simulation.policies import POLICIES
from litellm_messplus.brain.access import ACCESS
from litellm_messplus.brain.feedback import Feedback, Outcome
from litellm_messplus.brain.routes import build_routes
from litellm_messplus.brain.web import zoo_routes
from litellm_messplus.brain.zoos import Change, build_zoo_routes
from litellm_messplus.certificate.evidence import Sampling
from litellm_messplus.cli.every_day import certificate
from litellm_messplus.core.decision import Reason
from litellm_messplus.core.hold import Hold
from litellm_messplus.figures.interval import Verdict
from litellm_messplus.labels.checks.source import BUILT_IN
from litellm_messplus.page.routes import PATH, build_page_routes
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.serving.visibility import attributes, response_headers
from litellm_messplus.settings.labels import ChecksSettings
from litellm_messplus.status.alerts import AlertKind
from litellm_messplus.store.erasing import ERASED
from tests.docs.counters import counted
from tests.support.builders import request
from tests.support.faults import Fault
from tests.support.markdown import ROOT, Document, code_of

DOCS = ROOT / "docs"
MANAGER = "For a manager"
SIMULATED = "What it would save: a simulation"
WRITTEN = request(aim=0.8, price=0.1, expected_satisfaction=0.9, propensity=1.0)


def column(page: str, heading: str, name: str) -> list[str]:
    """The cells of a column in the tables under a heading."""
    rows = [row for row in Document(DOCS / f"{page}.md").under(heading) if name in row.cells]
    return [code_of(row.cells[name]) or row.cells[name] for row in rows]


def codes(page: str, heading: str, name: str) -> list[str]:
    """Each piece of code in the cells of a column, which may hold several."""
    rows = [row for row in Document(DOCS / f"{page}.md").under(heading) if name in row.cells]
    return re.findall(r"`([^`]+)`", " ".join(row.cells[name] for row in rows))


def routes(*routers: APIRouter) -> set[str]:
    return {
        f"{method} {re.sub('{.*}', '{id}', route.path).removeprefix(PATH)}"
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute) and route.include_in_schema
        for method in route.methods or ()
    }


async def anybody(_request: Any) -> None:
    """Let everybody in."""


def routes_of_the_page() -> set[str]:
    gates = dict.fromkeys(("administrator", "viewer", "own", "limited"), anybody)
    nothing = cast(Any, None)
    page = build_page_routes(nothing, nothing, Counters(), **gates)
    return routes(page, zoo_routes(nothing, nothing, Counters()))


def routes_of_http() -> set[str]:
    nothing = cast(Any, None)
    own = build_routes(nothing, Counters(), nothing, ACCESS)
    return routes(own, build_zoo_routes(nothing, Counters(), ACCESS.administrator))


def options(command: Callable[..., None]) -> dict[str, Any]:
    """Options of a command with their defaults."""
    app = typer.Typer(add_completion=False)
    app.command()(command)
    parameters: Any = typer.main.get_command(app).params
    return {max(each.opts, key=len): each.default for each in parameters if each.name != "help"}


def lists() -> dict[str, tuple[Iterable[str], Iterable[str]]]:
    """What a page lists, and what the code has."""
    http = Document(DOCS / "http.md")
    erased = [(table.name, name) for table, values in ERASED.items() for name in values]
    tables = column("retention", "Erasing one key or one user", "Table")
    columns = Document(DOCS / "retention.md").under("Erasing one key or one user")
    return {
        "alerts": (
            re.findall(r"^## ([a-z_]+)$", (DOCS / "runbook.md").read_text(), re.M),
            list(AlertKind),
        ),
        "alert rules": (
            column("operations", "Alerts in Prometheus", "Rule"),
            re.findall(r"- alert: (\w+)", (ROOT / "deploy/prometheus-rules.yml").read_text()),
        ),
        "faults": (column("faults", "Faults", "Fault"), map(str, Fault)),
        "erased columns": (
            [
                f"{table}.{name}"
                for table, row in zip(tables, columns, strict=True)
                for name in re.findall(r"`(\w+)`", row.cells["Column"])
            ],
            [f"{table}.{name}" for table, name in erased],
        ),
        "reasons": (column("tables", "Reasons", "Reason"), list(Reason)),
        "holds": (
            column("conversations", "When a request is held", "`requests.hold`"),
            list(Hold),
        ),
        "checks": (column("labels", "Checks", "Check"), [*BUILT_IN, "callables"]),
        "settings of checks": (column("labels", "Checks", "Check"), ChecksSettings.model_fields),
        "headers": (
            column("http", "Response headers", "Header"),
            response_headers(request(), model="small", first="tiny"),
        ),
        "routes": ([each for each in http.headings if "/messplus/" in each], routes_of_http()),
        "counters": (codes("http", "GET /messplus/health", "Counter"), counted()),
        "fields of feedback": (
            column("http", "POST /messplus/feedback", "Field"),
            Feedback.model_fields,
        ),
        "outcomes of feedback": (
            column("http", "What became of it", "Outcome"),
            map(str, Outcome),
        ),
        "changes of a mode": (
            [
                f"{code_of(row.cells['Field'])}: {row.cells['Meaning']}"
                for row in http.under("PATCH /messplus/zoos/{id}")
            ],
            [f"{name}: {each.description}" for name, each in Change.model_fields.items()],
        ),
        "routes of the page": (column("page", "Its routes", "Route"), routes_of_the_page()),
        "attributes of traces": (
            [
                f"messplus{each.removeprefix('messplus')}"
                for each in codes("traces", "Attributes", "Attribute")
            ],
            attributes(WRITTEN, WRITTEN.chosen, attempt=1),
        ),
        "options of the certificate": (
            column("certificate", "Making one", "Option"),
            {*options(certificate)} - {"ZOO", "zoo"},
        ),
        "words of the certificate": (
            [each.removesuffix(" x points") for each in codes("certificate", MANAGER, "Verdict")],
            list(Verdict),
        ),
        "samplings": (column("certificate", "For a statistician", "`sampling`"), list(Sampling)),
        "simulated certificates": (
            column("evidence/certificate", "How wide it is", "Case"),
            [case.name for case in simulated.CASES],
        ),
        "simulated keys": (
            column("evidence/labels", "Evidence: labels", "Keys"),
            [each.name for each in (*keys.HONEST, *keys.ALONE, *keys.TOGETHER, *keys.FEW)],
        ),
        "simulated policies": (
            column("evidence/conversations", SIMULATED, "Four seeds"),
            [policy.name for policy in POLICIES],
        ),
        "options of the simulation": (
            column("evidence/conversations", SIMULATED, "Option"),
            options(agents),
        ),
    }


LISTS = lists()


@pytest.mark.parametrize("name", LISTS)
def test_a_page_lists_what_the_code_has(name: str) -> None:
    listed, there = LISTS[name]

    assert sorted(listed) == sorted(there) != []
