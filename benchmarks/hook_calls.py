"""What each hook of the plugin costs a served request: function calls, LiteLLM's and our own.

    python -m benchmarks.hook_calls [REQUESTS]

One real proxy serves chat requests one after the other, and is switched between modes while it
runs. LiteLLM's share is what a request takes more with one hook that does nothing than with a
plugin without hooks; ours is what is called between the beginning and the end of the hook, as it
is. Calls of Python and of C on the thread of the event loop are counted (each step of a coroutine
is one), and the lower quartile of the requests is taken: it is the same on a busy machine, and has
nothing of what is done in batches beside the requests, such as writing the log.
"""

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx

from benchmarks.throughput import PROMPT, upstream
from tests.support.proxy import Proxy, ask, zoo_config

ROUTE = "/benchmark/calls"
WARM_UP = 20
PAUSE = 0.02
"""Seconds between two requests: LiteLLM logs the first meanwhile."""
AS_IT_IS, WITHOUT = "as_it_is", "without"
"""The plugin, and a plugin without hooks. Each other mode is named after its only hook, which does
nothing."""


class Counter:
    """The count of function calls; ``begun`` is its value at the beginning of each request,
    ``inside`` holds the calls within each hook."""

    def __init__(self, beginning: object) -> None:
        self._beginning = beginning
        self.calls = 0
        self.begun: list[int] = []
        self.inside: defaultdict[str, list[int]] = defaultdict(list)

    def count(self, frame: Any, event: str, argument: object) -> None:
        """Count an event of `sys.setprofile`."""
        if event == "call" or event == "c_call":
            self.calls += 1
            if frame.f_code is self._beginning:
                self.begun.append(self.calls)

    def around(self, name: str, hook: Any) -> Any:
        """Return the hook with its calls counted."""

        @wraps(hook)
        async def counted(*arguments: Any, **keywords: Any) -> Any:
            before = self.calls
            try:
                return await hook(*arguments, **keywords)
            finally:
                self.inside[name].append(self.calls - before)

        return counted

    def read(self) -> dict[str, int]:
        """Return the calls of a whole request, and within each hook, since the last reading."""
        whole = [later - earlier for earlier, later in pairwise(self.begun)]
        found = {name: _quartile(each) for name, each in self.inside.items()}
        found["request"] = _quartile(whole)
        self.begun.clear()
        self.inside.clear()
        return found


def _quartile(counts: Sequence[int]) -> int:
    return sorted(counts)[len(counts) // 4] if counts else 0


def counting() -> Any:
    """Return the plugin, with routes that switch its hooks and read the counts."""
    from litellm.proxy.utils import ProxyLogging
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    from litellm_messplus.plugin import instance
    from litellm_messplus.serving.litellm_seam import proxy_app

    plugin: Any = type(instance)
    hooks = {name: own for name, own in vars(plugin).items() if name.startswith("async_")}
    module = sys.modules[AutoHTTPProtocol.__module__]
    counter = Counter(vars(module)["RequestResponseCycle"].__init__.__code__)
    app = proxy_app()

    @app.get(ROUTE)
    async def names() -> list[str]:
        return list(hooks)

    @app.post(ROUTE + "/{mode}")
    async def switch(mode: str) -> dict[str, int]:
        """Switch to a mode; returns the counts of the one before."""
        sys.setprofile(None)
        found = counter.read()
        for name, own in hooks.items():
            if mode in (AS_IT_IS, name):
                kept = counter.around(name, own) if mode == AS_IT_IS else _doing_nothing(own)
                setattr(plugin, name, kept)
            elif name in vars(plugin):
                delattr(plugin, name)
        ProxyLogging._callback_capabilities_cache.clear()
        sys.setprofile(counter.count)
        return found

    return instance


def _doing_nothing(hook: Any) -> Any:
    """Return a hook that changes nothing: deployments are returned as they are."""

    @wraps(hook)
    async def nothing(*arguments: Any, healthy_deployments: Any = None, **keywords: Any) -> Any:
        return healthy_deployments

    return nothing


def calls_in(client: httpx.Client, mode: str, requests: int) -> dict[str, int]:
    """Serve that many requests in a mode, and return the calls."""
    client.post(f"{ROUTE}/{mode}").raise_for_status()
    for number in range(WARM_UP + requests):
        if number == WARM_UP:
            client.post(f"{ROUTE}/{mode}").raise_for_status()
        ask(client, PROMPT).raise_for_status()
        time.sleep(PAUSE)
    found: dict[str, int] = client.post(f"{ROUTE}/{AS_IT_IS}").raise_for_status().json()
    return found


def compare(client: httpx.Client, requests: int) -> None:
    """Print the cost of each hook, and of a request without them."""
    names: list[str] = client.get(ROUTE).json()
    ours = calls_in(client, AS_IT_IS, requests)
    without = calls_in(client, WITHOUT, requests)["request"]
    print(f"{'calls a request':40} LiteLLM's     ours")
    for name in names:
        litellms = calls_in(client, name, requests)["request"] - without
        print(f"{name:40} {litellms:9} {ours.get(name, 0):8}", flush=True)
    print(f"{'a request without hooks':40} {without:9}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("requests", nargs="?", type=int, default=60)
    requests = parser.parse_args().requests
    with tempfile.TemporaryDirectory() as name, upstream() as url:
        folder = Path(name)
        inside = "from benchmarks.hook_calls import counting\n\ninstance = counting()\n"
        (folder / "counting.py").write_text(inside)
        config = zoo_config(url, folder, zoo={"alpha": 0.8})
        config["litellm_settings"]["callbacks"] = ["counting.instance"]
        proxy = Proxy(config, folder).start()
        try:
            with proxy.client() as client:
                compare(client, requests)
        finally:
            proxy.stop()


if __name__ == "__main__":
    main()
