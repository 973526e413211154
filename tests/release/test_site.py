"""The site has every page, in the order in which the index lists them, and its links are kept.

`make site` builds it strictly, which checks each link and anchor; nothing of it is installed here.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.markdown import ROOT
from tools.site import PAGES, place_of, rewritten

INDEX = (ROOT / "docs" / "README.md").read_text("utf-8")
LISTED = re.findall(r"^- \[[^\]]+\]\(([\w-]+\.md)\): \S", INDEX, re.MULTILINE)


class Loader(yaml.SafeLoader):
    """Reads the settings of MkDocs, which may name Python objects."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)
SITE: dict[str, Any] = yaml.load((ROOT / "tools/mkdocs.yml").read_text(), Loader)


def pages(nav: Any) -> Iterator[str]:
    """The pages of the navigation, in its order."""
    if isinstance(nav, str):
        yield nav
    for each in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from pages(each)


def test_every_page_is_in_the_navigation_once() -> None:
    docs = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}

    assert sorted(pages(SITE["nav"])) == sorted(docs | set(PAGES.values()))


def test_the_order_is_that_of_the_index() -> None:
    assert [page for page in pages(SITE["nav"]) if page in LISTED] == LISTED


def test_what_leads_nowhere_fails_the_build() -> None:
    assert SITE["strict"] is True
    assert set(SITE["validation"]["links"].values()) == {"warn"}
    assert set(SITE["validation"]["nav"].values()) == {"warn"}
    assert set(SITE["validation"]["links"]) >= {"not_found", "anchors"}


@pytest.mark.parametrize(
    ("source", "link", "expected"),
    [
        ("README.md", "docs/status.md#metrics", "status.md#metrics"),
        ("README.md", "docs/images/demo.svg", "images/demo.svg"),
        ("docs/status.md", "http.md", "http.md"),
        ("docs/status.md", "../README.md", "overview.md"),
        ("docs/status.md", "#metrics", "#metrics"),
        ("docs/operations.md", "../deploy/compose.yaml", "files/deploy/compose.yaml"),
        ("docs/evidence/control.md", "../../SECURITY.md#to-say", "../security.md#to-say"),
        ("docs/evidence/control.md", "../control.md", "../control.md"),
        ("examples/agent/README.md", "../tiny_zoo/README.md", "tiny_zoo.md"),
        ("docs/vllm.md", "https://docs.vllm.ai", "https://docs.vllm.ai"),
    ],
)
def test_a_link_leads_to_the_sites_target(source: str, link: str, expected: str) -> None:
    assert rewritten(f"See [it]({link}).", source) == f"See [it]({expected})."


def test_code_is_left_as_it_is() -> None:
    page = "```md\n[it](../README.md)\n```\n[it](../README.md)"

    assert rewritten(page, "docs/status.md") == "```md\n[it](../README.md)\n```\n[it](overview.md)"


def test_no_two_pages_share_a_place() -> None:
    docs = [str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")]
    places = [place_of(path) for path in [*PAGES, *docs]]

    assert len(set(places)) == len(places)
