"""How long the page takes on a log of so many requests: each route, and a browser's first paint.

    python -m benchmarks.page --requests 1000000 [--chromium /usr/bin/chromium] [--json]

The log is made by `benchmarks.scaled_log` in a temporary SQLite file and served by the page's own
routes. Each figure of a route is the median of five, and above its limit the program ends with
status 1. With `--chromium` (and the package `playwright`) the page is opened five times, signed in.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks.scale import _make_haste
from benchmarks.scaled_log import LEVELS, MODELS, make_log
from litellm_messplus.status.figures import LiveLevel
from litellm_messplus.store.database import create_engine, migrate
from tests.page.serving import KEY, ServedPage

ZOO = "zoo"
TIMES = 5
BAR_SECONDS = 0.3
PAINT_BAR_SECONDS = 1.0
PROMISE = f"zoo={ZOO}&service_level={LEVELS[0]}"
SERIES, LISTED = f"series?{PROMISE}", f"requests?{PROMISE}"
ROUTES = {
    "overview": "overview",
    "calibration": "calibration",
    "newest": SERIES,
    "a day": f"{SERIES}&days=1",
    "a week": f"{SERIES}&days=7",
    "a month": f"{SERIES}&days=30",
    "a year": f"{SERIES}&days=365",
    "requests": LISTED,
    "of a model": f"{LISTED}&model={MODELS[0]}&verdict=unsatisfied",
    "nothing found": f"{LISTED}&verdict=unsatisfied&model=none",
}


async def make(url: str, count: int) -> str:
    """Fill the database; returns the id of the newest request."""
    database = create_engine(url)
    await migrate(database)
    await _make_haste(database)
    scaled = await make_log(database, count, ZOO)
    await database.dispose()
    return scaled.newest


def timed_routes(url: str, newest: str) -> dict[str, float]:
    """Return the median seconds of each route, as a client waits for it."""
    headers = {"authorization": f"Bearer {KEY}"}
    found = {}
    with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
        for name, route in {**ROUTES, "explanation": f"requests/{newest}"}.items():
            took = []
            for _ in range(TIMES):
                began = time.perf_counter()
                client.get(f"data/{route}").raise_for_status()
                took.append(time.perf_counter() - began)
            found[name] = statistics.median(took)
    return found


def timed_paints(url: str, chromium: str) -> dict[str, float]:
    """Return the median seconds from opening the page to the first paint, and until all charts are
    there; each time in a fresh browser with only the session."""
    from playwright.sync_api import sync_playwright

    first, charts = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(TIMES):
            context = browser.new_context()
            context.request.post(f"{url}session/key", headers={"authorization": f"Bearer {KEY}"})
            page = context.new_page()
            began = time.perf_counter()
            page.goto(url)
            page.locator(".plot path").nth(3).wait_for(state="attached")
            charts.append(time.perf_counter() - began)
            painted = page.evaluate(
                "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            )
            first.append(painted / 1000)
            context.close()
        browser.close()
    return {"first paint": statistics.median(first), "charts": statistics.median(charts)}


def measure(count: int, chromium: str | None) -> dict[str, Any]:
    """Return all figures for a log of that length."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite+aiosqlite:///{Path(folder) / 'messplus.db'}"
        newest = asyncio.run(make(url, count))
        live = {(ZOO, level): LiveLevel(0.0, alpha=0.8, cost_unit="usd") for level in LEVELS}
        page = ServedPage(url, live).start()
        try:
            found: dict[str, Any] = {"requests": count, "routes": timed_routes(page.url, newest)}
            if chromium is not None:
                found["paints"] = timed_paints(page.url, chromium)
        finally:
            page.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, required=True, help="A multiple of 1000.")
    parser.add_argument("--chromium", help="The browser to paint in; left out, routes alone.")
    parser.add_argument("--json", action="store_true", help="One JSON object.")
    given = parser.parse_args()
    found = measure(given.requests, given.chromium)
    bars = {name: (took, BAR_SECONDS) for name, took in found["routes"].items()}
    bars |= {name: (took, PAINT_BAR_SECONDS) for name, took in found.get("paints", {}).items()}
    missed = [name for name, (took, bar) in bars.items() if took > bar]
    if given.json:
        print(json.dumps({**found, "missed": missed}))
    else:
        print(f"{'requests':16}{found['requests']:>12}")
        for name, (took, bar) in bars.items():
            print(f"{name:16}{took:12.4f} s   bar {bar:g} s")
    raise SystemExit(bool(missed))


if __name__ == "__main__":
    main()
