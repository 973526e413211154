"""Function calls that the plugin adds to a chat request, the same on a busy machine.

    python -m benchmarks.calls [--requests N] [--json]

Two real proxies over one upstream, with the plugin and without, serve chat requests whose prompts
all differ, one after the other (eight at once count 100 more or less by chance), after 300 labels,
by which the cheapest model holds alpha: else calls to others would be counted, unseen ones too.
Calls of Python and of C are counted in every thread of the proxy's process (each step of a
coroutine is one), and what the process calls in the same time without requests is subtracted: jobs
by the clock are not a request's.

``extra_calls`` is the difference a request. Calls below a function of ours are also counted by the
hook or task where our code was entered: ``journal_calls`` write and fold the log, ``road_calls``
are all others. ``litellm_calls`` is the rest: what LiteLLM does because the hooks are there.
``own_functions`` are calls of Python functions of the plugin itself.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

from benchmarks.throughput import different_prompts, upstream
from tests.support.patience import until
from tests.support.proxy import Config, Proxy, ask, quick, without_plugin, zoo_config

LABELS = 300
REQUESTS = 200
BEGIN, END = signal.SIGUSR1, signal.SIGUSR2
"""Signals by which a proxy begins to count, and writes down what it counted."""
COUNTED = "calls.json"
OWN = "/litellm_messplus/"
JOURNAL = tuple(OWN + name for name in ("journal", "backlog", "restore", "store/", "learning/"))
DATABASE = ("/sqlalchemy/", "/aiosqlite/", "/asyncpg/")
TRANSPARENT = OWN + "runtime/"
"""Functions that only call those that they are given."""
INSIDE = "from benchmarks.calls import Calls\n\nCalls().listen()\n"
"""What each process of a proxy executes at its start."""


class Calls:
    """The calls of this process by the function of ours where they were entered, and by the
    function of ours that made them."""

    def __init__(self) -> None:
        self._is_on = False
        self._of_code: dict[CodeType, tuple[str | None, str]] = {}
        self._entered: dict[FrameType, tuple[str, str]] = {}
        self._reset()

    def _reset(self) -> None:
        self._entered.clear()
        self.all = self.own = 0
        self.of: defaultdict[tuple[str, str], int] = defaultdict(int)

    def listen(self) -> None:
        """Count between the two signals."""
        threading.setprofile(self.count)  # for the threads to come; the signals are the main one's
        signal.signal(BEGIN, self._begin)
        signal.signal(END, self._end)

    def _begin(self, *_: object) -> None:
        self._reset()
        self._is_on = True
        sys.setprofile(self.count)

    def _end(self, *_: object) -> None:
        sys.setprofile(None)
        self._is_on = False
        rows = [[*names, count] for names, count in self.of.items()]
        Path(COUNTED + ".new").write_text(json.dumps([self.all, self.own, rows]))
        os.replace(COUNTED + ".new", COUNTED)

    def count(self, frame: FrameType, event: str, argument: object) -> None:
        """Count an event of `sys.setprofile`."""
        if not self._is_on:
            return
        if event == "call":
            self.all += 1
            known = self._of_code.get(frame.f_code)
            if known is None:
                known = self._of_code[frame.f_code] = _named(frame.f_code)
            entry, name = known
            above = self._entered.get(frame.f_back) if frame.f_back is not None else None
            if entry is None:
                if above is None:
                    return
                name = above[1]
            else:
                self.own += bool(name)
            within = (above[0] if above is not None else str(entry), name)
            self._entered[frame] = within
            self.of[within] += 1
        elif event == "c_call":
            self.all += 1
            found = self._entered.get(frame)
            if found is not None:
                self.of[found] += 1
        elif event == "return":
            self._entered.pop(frame, None)


def _named(code: CodeType) -> tuple[str | None, str]:
    """Name where a function enters our code, and itself; None if it is not ours."""
    file = code.co_filename
    if any(part in file for part in DATABASE):
        return "journal", ""
    if OWN not in file or TRANSPARENT in file:
        return None, ""
    name = f"{file.rpartition(OWN)[2]}:{code.co_qualname}"
    return "journal" if any(part in file for part in JOURNAL) else name, name


def _signalled(proxy: Proxy, sign: signal.Signals) -> None:
    os.kill(proxy.process_id, sign)


def counted(proxy: Proxy, work: Callable[[], object]) -> tuple[int, int, Counter[tuple[str, str]]]:
    """Count what a proxy calls meanwhile."""
    file = proxy.folder / COUNTED
    file.unlink(missing_ok=True)
    _signalled(proxy, BEGIN)
    work()
    _signalled(proxy, END)
    until(file.exists)
    everything, own, rows = json.loads(file.read_text())
    return everything, own, Counter({(entry, name): count for entry, name, count in rows})


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


def calls_of(
    config: Config, folder: Path, requests: int, *, is_labelled: bool
) -> tuple[float, float, dict[tuple[str, str], float]]:
    """Return the calls of a request, those of our own functions, and all of ours by entry."""
    prompts = different_prompts()
    with counting(config, folder) as proxy:
        serve(proxy, prompts, LABELS, labels=is_labelled)
        started = time.monotonic()
        busy = counted(proxy, lambda: serve(proxy, prompts, requests))
        seconds = time.monotonic() - started
        idle = counted(proxy, lambda: time.sleep(seconds))
    found = {name: (busy[2][name] - idle[2][name]) / requests for name in busy[2]}
    return (busy[0] - idle[0]) / requests, (busy[1] - idle[1]) / requests, found


def measure(requests: int) -> tuple[dict[str, int], dict[tuple[str, str], float]]:
    """Return the figures, and the calls of ours by entry and function."""
    with tempfile.TemporaryDirectory() as name, upstream() as url:
        folder = Path(name)
        config = zoo_config(url, folder, zoo={"alpha": 0.8})
        plain, _, _ = calls_of(
            without_plugin(config), folder / "plain", requests, is_labelled=False
        )
        (folder / "with").mkdir()
        labelled = quick(config, folder / "with", verdicts={"per_minute": 100_000})
        everything, own, found = calls_of(labelled, folder / "with", requests, is_labelled=True)
    journal = sum(count for (entry, _), count in found.items() if entry == "journal")
    road = sum(found.values()) - journal
    figures = {
        "extra_calls": everything - plain,
        "plain_calls": plain,
        "own_functions": own,
        "journal_calls": journal,
        "road_calls": road,
        "litellm_calls": everything - plain - journal - road,
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
    for place in (0, 1):
        print()
        by_name: defaultdict[str, float] = defaultdict(float)
        for names, calls in found.items():
            by_name[names[place]] += calls
        for name in sorted(by_name, key=lambda name: -by_name[name])[: given.functions]:
            print(f"{by_name[name]:8.1f}  {name or '(the database)'}")


if __name__ == "__main__":
    main()
