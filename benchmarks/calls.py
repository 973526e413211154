"""Function calls that the plugin adds to a chat request, the same on a busy machine.

    python -m benchmarks.calls [--requests N] [--json]

Two real proxies over one upstream, with the plugin and without, serve chat requests whose prompts
all differ, one after the other (eight at once count 100 more or less by chance), after 300 labels,
by which the cheapest model holds alpha: else calls to others would be counted, unseen ones too.
Calls of Python and of C are counted in every thread of the proxy's process (each step of a
coroutine is one), and what the process calls in the same time without requests is subtracted: jobs
by the clock are not a request's. What is done by the clock under load, such as taking over the
brain's messages, weighs more where requests are slower: run it where nothing else runs, and compare
``journal_calls`` at the same ``requests_per_second``. The other figures do not depend on it.

``extra_calls`` is the difference a request, ``own_functions`` the calls of the plugin's Python
functions among them. ``journal_calls`` are those of functions that read and write the database, the
log and the state, and what they call themselves; ``road_calls`` the same of all other functions of
the plugin. ``litellm_calls`` is the rest: what LiteLLM does because of the hooks, and libraries.
"""

import argparse
import json
import os
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from cProfile import Profile
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.throughput import different_prompts, upstream
from tests.support.patience import until
from tests.support.proxy import Config, Proxy, ask, quick, without_plugin, zoo_config

LABELS = 300
REQUESTS = 200
BEGIN, END = signal.SIGUSR1, signal.SIGUSR2
"""Signals by which a proxy begins to count, and writes down what it counted."""
COUNTED = "calls.json"
OWN = "/litellm_messplus/"
JOURNAL = (
    *("/sqlalchemy/", "/aiosqlite/", "/asyncpg/", "/sqlite3/"),
    *(OWN + name for name in ("journal", "backlog", "restore", "store/", "learning/")),
    *(OWN + name for name in ("core/published", "core/snapshot", "brain/line_log")),
)
"""Files of what reads and writes the database, the log and the state."""
INSIDE = "from benchmarks.calls import Calls\n\nCalls().listen()\n"
"""What each process of a proxy executes at its start."""


class Calls:
    """The calls of this process, by cProfile: the main thread's between two signals, those of the
    others always."""

    def __init__(self) -> None:
        self._main = Profile()
        self._others: list[Profile] = []
        self._before = self._counted()

    def listen(self) -> None:
        """Count between the two signals."""
        threading.setprofile(self._another)
        signal.signal(BEGIN, self._begin)
        signal.signal(END, self._end)

    def _another(self, *_: object) -> None:
        """Count a thread that has begun."""
        self._others.append(Profile())
        self._others[-1].enable()

    def _begin(self, *_: object) -> None:
        self._before = self._counted()
        self._main.enable()

    def _end(self, *_: object) -> None:
        self._main.disable()
        found = {name: count - self._before[name] for name, count in self._counted().items()}
        Path(COUNTED + ".new").write_text(json.dumps(found))
        os.replace(COUNTED + ".new", COUNTED)

    def _counted(self) -> Counter[str]:
        """Count all calls so far; those of our functions and of the database's, and what these call
        themselves, by the function."""
        found: Counter[str] = Counter()
        for profile in (self._main, *self._others):
            for entry in profile.getstats():
                found[ALL] += entry.callcount
                name = _named(entry.code)
                if name is None:
                    continue
                found[name] += entry.callcount
                found[ITSELF] += entry.callcount if name.startswith(OWN) else 0
                for called in entry.calls or ():
                    if _named(called.code) is None:
                        found[name] += called.callcount
        return found


ALL, ITSELF, RATE = "all", "own functions", "requests a second"


def _named(code: Any) -> str | None:
    """Name a function of ours or of the database's; None for all others."""
    file = getattr(code, "co_filename", "")  # a function of C has none
    if OWN in file:
        return f"{OWN}{file.rpartition(OWN)[2]}:{code.co_qualname}"
    return next((part for part in JOURNAL if part in file), None)


def _signalled(proxy: Proxy, sign: signal.Signals) -> None:
    os.kill(proxy.process_id, sign)


def counted(proxy: Proxy, work: Callable[[], object]) -> Counter[str]:
    """Count what a proxy calls meanwhile, by function."""
    file = proxy.folder / COUNTED
    file.unlink(missing_ok=True)
    _signalled(proxy, BEGIN)
    work()
    _signalled(proxy, END)
    until(file.exists)
    return Counter(json.loads(file.read_text()))


@contextmanager
def counting(config: Config, folder: Path) -> Iterator[Proxy]:
    """Run a proxy that can count its calls."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(INSIDE)
    checkout = str(Path(__file__).parents[1])
    proxy = Proxy(config, folder, environment={"PYTHONPATH": checkout}).start()
    try:
        yield proxy
    finally:
        proxy.stop()


def serve(proxy: Proxy, prompts: Iterator[str], requests: int, *, labels: bool = False) -> None:
    """Serve requests one after the other, and give a verdict on each if ``labels``."""
    with proxy.client() as client:
        for number, prompt in enumerate(islice(prompts, requests)):
            answer = ask(client, prompt).raise_for_status()
            if labels:
                verdict = {"id": answer.headers["x-messplus-request-id"]}
                given = {**verdict, "satisfied": number % 20 > 0}
                client.post("/messplus/feedback", json=given).raise_for_status()


def calls_of(config: Config, folder: Path, requests: int, *, is_labelled: bool) -> dict[str, float]:
    """Return the calls of a request by function."""
    prompts = different_prompts()
    with counting(config, folder) as proxy:
        serve(proxy, prompts, LABELS, labels=is_labelled)
        started = time.monotonic()
        busy = counted(proxy, lambda: serve(proxy, prompts, requests))
        seconds = time.monotonic() - started
        idle = counted(proxy, lambda: time.sleep(seconds))
    found = {name: (busy[name] - idle[name]) / requests for name in busy}
    return found | {RATE: requests / seconds}


def measure(requests: int) -> tuple[dict[str, int], dict[str, float]]:
    """Return the figures, and the calls of a request by function of ours and of the database's."""
    with tempfile.TemporaryDirectory() as name, upstream() as url:
        folder = Path(name)
        config = zoo_config(url, folder, zoo={"alpha": 0.8})
        plain = without_plugin(config)
        plain_calls = calls_of(plain, folder / "plain", requests, is_labelled=False)[ALL]
        (folder / "with").mkdir()
        labelled = quick(config, folder / "with", verdicts={"per_minute": 100_000})
        found = calls_of(labelled, folder / "with", requests, is_labelled=True)
    everything, own, rate = found.pop(ALL), found.pop(ITSELF), found.pop(RATE)
    journal = sum(found[name] for name in found if any(part in name for part in JOURNAL))
    figures = {
        "extra_calls": everything - plain_calls,
        "plain_calls": plain_calls,
        "own_functions": own,
        "journal_calls": journal,
        "road_calls": sum(found.values()) - journal,
        "litellm_calls": everything - plain_calls - sum(found.values()),
        "requests_per_second": rate,
    }
    return {name: round(count) for name, count in figures.items()}, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="the N largest")
    given = parser.parse_args()
    figures, found = measure(given.requests)
    if given.json:
        print(json.dumps(figures))
        return
    for name, count in figures.items():
        print(f"{name:20} {count:8,}")
    for name in sorted(found, key=lambda name: -found[name])[: given.functions]:
        print(f"{found[name]:8.1f}  {name.removeprefix(OWN)}")


if __name__ == "__main__":
    main()
