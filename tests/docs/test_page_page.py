"""`docs/page.md` describes every route of the page, its policy and its bounds."""

import re
from datetime import timedelta
from typing import Any, cast

import pytest
from fastapi.routing import APIRoute

from litellm_messplus.inspecting import listing
from litellm_messplus.page import charts, data, sign_ins
from litellm_messplus.page.charts import STEPS
from litellm_messplus.page.data import PageData
from litellm_messplus.page.routes import HEADERS, PATH, build_page_routes
from litellm_messplus.page.sign_ins import Kind, SignIns
from litellm_messplus.proxy.page import CONNECTIONS, SWITCH, zoo_routes
from litellm_messplus.proxy.zoos import SHOWING_SECONDS, ZooDesk
from litellm_messplus.runtime import Counters
from tests.support.markdown import ROOT, Document, code_of

PAGE = Document(ROOT / "docs" / "page.md")
PANELS = ROOT / "litellm_messplus" / "page" / "static"


async def anybody(_request: Any) -> None:
    """Let everybody in."""


def test_every_route_is_described() -> None:
    router = build_page_routes(
        cast(PageData, None),
        cast(SignIns, None),
        Counters(),
        administrator=anybody,
        viewer=anybody,
        own=anybody,
        limited=anybody,
    )
    zoos = zoo_routes(cast(ZooDesk, None), cast(SignIns, None), Counters())
    routes = {
        f"{method} {re.sub('{.*}', '{id}', route.path).removeprefix(PATH)}"
        for route in (*router.routes, *zoos.routes)
        if isinstance(route, APIRoute) and route.include_in_schema
        for method in route.methods or ()
    }

    assert {code_of(row.cells["Route"]) for row in PAGE.under("Its routes")} == routes


def test_the_policy_is_the_one_that_is_sent() -> None:
    (block,) = [block for block in PAGE.blocks if block.language == "text"]

    assert block.code.strip() == HEADERS["content-security-policy"]


def test_every_chart_and_panel_is_described() -> None:
    described = {row.cells["Panel"] for row in PAGE.under("What it shows")}
    titles = {
        title
        for path in PANELS.glob("panel_*.js")
        for title in re.findall(r'chartCard\(\s*"([^"]+)"', path.read_text())
        + re.findall(r'-title"[^}]*}, "([A-Z][^"]+)"\)', path.read_text())
    } - {"Why this model?"}

    assert described == titles


@pytest.mark.parametrize(
    "said",
    [
        f"newest {charts.NEWEST} requests",
        f"that of the {charts.TRAILING} requests up to it",
        f"at most {sign_ins.MOST[Kind.CODE]} codes and\n{sign_ins.MOST[Kind.SESSION]} sessions",
        f"{listing.LOOK_BACK:,} positions of the log",
        f"more\nthan {data.LONGEST_SECONDS:g} seconds is given up",
        f"{CONNECTIONS} connections to the database of its own",
        f"up to {next(most for most, step in reversed(STEPS) if step < timedelta(days=1))} days",
        f"lasts {sign_ins.LASTS[Kind.SESSION] // timedelta(hours=1)} hours",
        SWITCH,
    ],
)
def test_its_bounds_are_those_of_the_code(said: str) -> None:
    assert re.sub(r"\s+", " ", said) in re.sub(r"\s+", " ", PAGE.text)


def test_a_zoo_is_read_no_longer_than_the_rest() -> None:
    assert SHOWING_SECONDS == data.LONGEST_SECONDS


def test_a_code_lasts_five_minutes() -> None:
    assert sign_ins.LASTS[Kind.CODE] == timedelta(minutes=5)
    assert "within five minutes" in PAGE.text
