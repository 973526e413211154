"""The pictures of the docs, all from one run: `make pictures`.

It serves the tiny zoo as `make run` does, with its own history, runs `make demo`, and takes the
pictures of its table and of the page after it. Review them before committing.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from examples.serving import ROOT, own_proxy
from litellm_messplus.cli.every_day import link
from tests.support.browser import chromium
from tests.support.packages import INSTALL, find

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES = ROOT / "docs" / "images"
DEMO = "demo.svg"


class Screen(NamedTuple):
    """A screen that shows the page; its size is in pixels."""

    theme: str
    width: int
    height: int


PAGES: Mapping[str, Screen] = {
    "page-light.png": Screen("light", 1440, 900),
    "page-dark.png": Screen("dark", 1440, 900),
    "page-phone.png": Screen("light", 375, 812),
}
"""The pictures of the page."""


def take_demo(url: str, key: str, path: Path) -> None:
    """Run `make demo` with the proxy there, and draw its output."""
    command = [sys.executable, "-m", "examples.tiny_zoo.demo", "--ask-all"]
    environment = {**os.environ, "LITELLM_MASTER_KEY": key, "COLUMNS": "80"}
    command += ["--url", url, "--svg", str(path)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def take_pages(browser: "Browser", url: str, key: str, folder: Path) -> None:
    """Take every picture of the page of the proxy there."""
    for name, (theme, width, height) in PAGES.items():
        context = browser.new_context(
            color_scheme="dark" if theme == "dark" else "light",
            viewport={"width": width, "height": height},
        )
        page = context.new_page()
        page.goto(link(url, key))
        page.locator("#content[data-shown=promise]").wait_for()
        page.screenshot(path=folder / name, animations="disabled")
        context.close()


def main() -> None:
    """Make all pictures."""
    program = find("chromium")
    if program is None:
        raise SystemExit(f"pictures: no chromium is installed: {INSTALL} chromium")
    with chromium(program) as browser, own_proxy(ROOT / "examples" / "tiny_zoo") as (url, key):
        take_demo(url, key, IMAGES / DEMO)
        take_pages(browser, url, key, IMAGES)


if __name__ == "__main__":
    main()
