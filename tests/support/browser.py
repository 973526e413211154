"""A real browser: Debian's Chromium, driven by Playwright."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.patience import PATIENT

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@contextmanager
def chromium(program: Path) -> Iterator["Browser"]:
    """Start it, and end it. Playwright runs an event loop in this thread until then, so nothing
    else may meanwhile."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"], timeout=1000 * PATIENT
        )
        yield started
        started.close()
