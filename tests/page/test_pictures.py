"""The pictures of the docs are taken by a command, each of a page that shows its data."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.peers.picture import PATH
from benchmarks.pictures import DEMO, IMAGES, PAGES, take_pages
from tests.page.serving import KEY, ServedPage
from tests.support.markdown import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def size(png: Path) -> tuple[int, int]:
    """The width and height that its header states."""
    header = png.read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    return int.from_bytes(header[16:20]), int.from_bytes(header[20:24])


def test_every_picture_that_the_docs_show_is_one_that_the_command_takes() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = {name for page in pages for name in re.findall(r"images/([\w.-]+)", page.read_text())}

    assert shown == {*PAGES, DEMO, PATH.name} == {path.name for path in IMAGES.iterdir()}


@pytest.mark.end_to_end
def test_each_is_of_its_screen(browser: "Browser", page: ServedPage, tmp_path: Path) -> None:
    take_pages(browser, page.url.removesuffix("/messplus/ui/"), KEY, tmp_path)

    for name, screen in PAGES.items():
        assert size(tmp_path / name) == (screen.width, screen.height)
    light, dark, _ = ((tmp_path / name).read_bytes() for name in PAGES)
    assert light != dark
