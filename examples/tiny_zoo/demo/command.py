"""A demo: real requests through the proxy, every answer checked, and what it comes to."""

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import count
from pathlib import Path

import httpx
from openai import APIConnectionError, APIStatusError, OpenAI
from rich.console import Console
from rich.progress import Progress

from examples.tiny_zoo.demo.asides import Models, list_deployments
from examples.tiny_zoo.demo.report import JOULES, Answers, DemoReport, Judging, Yardsticks, table
from examples.tiny_zoo.demo.session import (
    Labelling,
    Outcome,
    Reported,
    Sent,
    Session,
    refusal,
    refusal_of_route,
)
from examples.tiny_zoo.tasks import Task, generate
from litellm_messplus.cli.every_day import link
from litellm_messplus.inspecting.client import NoAnswerError

# Waiting for the labels that come after the answer: a judge takes its time.

QUIET_SECONDS = 10.0
"""Without a new label for so long, no more are waited for: not every request gets one."""
LONGEST_SECONDS = 600.0
"""However many still come."""
LOOK_SECONDS = 0.5
"""Between two looks."""


def wait_for_labels(
    labelled: Callable[[], int],
    requests: int,
    *,
    look_seconds: float = LOOK_SECONDS,
    quiet_seconds: float = QUIET_SECONDS,
    longest_seconds: float = LONGEST_SECONDS,
) -> None:
    """Wait until all ``requests`` are ``labelled``, which is checked again and again, or no more
    come."""
    start = last_news = time.monotonic()
    known = labelled()
    while known < requests:
        if time.monotonic() > min(last_news + quiet_seconds, start + longest_seconds):
            return
        time.sleep(look_seconds)
        found = labelled()
        if found > known:
            known, last_news = found, time.monotonic()


def run(
    *,
    url: str,
    key: str,
    model: str | None,
    labelling: Labelling,
    requests: int,
    seed: int,
    concurrent: int,
    ask_all: bool,
    as_json: bool,
    svg: Path | None,
) -> int:
    """Send the tasks of the seed, and print the table, or one JSON object; the rest is as in
    :func:`play`. Returns the exit status."""
    report = play(
        url=url,
        key=key,
        model=model,
        labelling=labelling,
        tasks=list(generate(requests, seed)),
        concurrent=concurrent,
        ask_all=ask_all,
    )
    _show(report, as_json, svg)
    if not as_json:
        print(f"The page: {_page(url, key)}")
    return 0


def play(
    *,
    url: str,
    key: str,
    labelling: Labelling,
    tasks: Sequence[Task],
    concurrent: int,
    ask_all: bool,
    model: str | None = None,
) -> DemoReport:
    """Send the tasks, ``concurrent`` at once, and report the result.

    ``model`` is called in place of the zoo that belongs to ``labelling``; with ``ask_all`` every
    model of it is called aside too. Raises SystemExit where no proxy answers, or where it or the
    plugin refuses.
    """
    headers = {"authorization": f"Bearer {key}"}
    with (
        OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client,
        httpx.Client(base_url=f"{url}/messplus", headers=headers, timeout=30.0) as messplus,
        Progress(console=Console(stderr=True)) as progress,
        ThreadPoolExecutor(concurrent) as threads,
    ):
        session = Session(client, messplus, model or labelling.zoo, labelling)
        demo = Demo(client, session, labelling.mode, progress, threads)
        try:
            return demo.go(tasks, ask_all=ask_all)
        except APIConnectionError as error:
            raise SystemExit(
                f"messplus: no proxy answers on {url}: start it with `make run`"
            ) from error
        except APIStatusError as error:
            raise SystemExit(f"messplus: {refusal(error, url)}") from error
        except httpx.HTTPError as error:
            raise SystemExit(f"messplus: {refusal_of_route(error, url)}") from error


def _page(url: str, key: str) -> str:
    """Return a link that signs in to the page; its bare address where the key may not."""
    try:
        return link(url, key)
    except NoAnswerError:
        return f"{url}/messplus/ui"


class Demo:
    """One run of it: the ``session`` sends, ``client`` asks aside, on ``threads``."""

    def __init__(
        self, client: OpenAI, session: Session, labels: str, progress: Progress, threads: Executor
    ) -> None:
        self._client = client
        self._session = session
        self._labels = labels
        self._progress = progress
        self._threads = threads

    def go(self, tasks: Sequence[Task], *, ask_all: bool) -> DemoReport:
        """Send the tasks, look the outcomes up once they are labelled, and ask aside."""
        deployments = list_deployments(self._client) if ask_all else []
        before, middle = self._judging(), (len(tasks) + 1) // 2
        sent = self._send(tasks[:middle], 0)
        half = self._judging()
        sent += self._send(tasks[middle:], middle)
        if not sent:
            raise SystemExit("messplus: none of the requests was routed: see the proxy's log")
        requests = [request for _, request in sent]
        reported = _settle(self._session, requests, self._progress)
        found = self._threads.map(
            self._session.look_up, [request.request_id for request in requests]
        )
        outcomes = list(self._progress.track(found, total=len(sent), description="outcomes"))
        if not ask_all:
            yardsticks = Yardsticks()
        elif reported.cost_unit == "joule":
            yardsticks = Yardsticks(note=JOULES)
        else:
            models = Models(self._client, deployments, outcomes[-1]["zoo"])
            answers = self._ask_all(models, [task for task, _ in sent], outcomes)
            yardsticks = Yardsticks.of(answers, outcomes)
        unrouted = len(tasks) - len(sent)
        judging = Judging(before, half, self._judging())
        return DemoReport.of(
            self._labels, requests, outcomes, reported, unrouted, yardsticks, judging
        )

    def _judging(self) -> float | None:
        """Ask what judges have cost so far, where the mode buys labels; else None."""
        return self._session.judging() if self._labels == "auto" else None

    def _send(self, tasks: Sequence[Task], first: int) -> list[tuple[Task, Sent]]:
        """Send tasks, numbered from ``first`` on; return those that the plugin routed."""
        answered = self._threads.map(self._session.send, count(first), tasks)
        tracked = self._progress.track(answered, total=len(tasks), description="requests")
        return [
            (task, request)
            for task, request in zip(tasks, tracked, strict=True)
            if request is not None
        ]

    def _ask_all(
        self, models: Models, tasks: Sequence[Task], outcomes: Sequence[Outcome]
    ) -> list[Answers]:
        """Ask every candidate for its answer to each task."""
        names = sorted({name for outcome in outcomes for name in outcome["estimated_cost"]})
        calls = [(name, task) for task in tasks for name in names]
        answered = self._threads.map(models.ask, *zip(*calls, strict=True))
        tracked = self._progress.track(answered, total=len(calls), description="every model aside")
        asides = iter(list(tracked))
        return [{name: next(asides) for name in names} for _ in tasks]


def _settle(session: Session, sent: Sequence[Sent], progress: Progress) -> Reported:
    """Wait for the labels, and return what the proxy reports then."""
    newest = session.look_up(sent[-1].request_id)
    bar = progress.add_task("labels", total=len(sent))

    def labelled() -> int:
        found = session.reported(newest, len(sent)).labelled
        progress.update(bar, completed=found or 0)
        return len(sent) if found is None else found

    wait_for_labels(labelled, len(sent))
    return session.reported(newest, len(sent))


def _show(report: DemoReport, as_json: bool, svg: Path | None) -> None:
    if as_json:
        print(json.dumps(report.as_dict()))
        return
    console = Console(record=svg is not None)
    console.print(table(report))
    if svg is not None:
        console.save_svg(str(svg), title="make demo")
