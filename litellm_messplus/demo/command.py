"""`messplus demo`: real requests through the proxy, every answer checked, and what it comes to."""

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import httpx
from openai import APIConnectionError, OpenAI
from rich.console import Console
from rich.progress import Progress

from litellm_messplus.demo.labelling import Labelling
from litellm_messplus.demo.report import Report, table
from litellm_messplus.demo.session import Reported, Sent, Session
from litellm_messplus.demo.settling import wait_for_labels
from litellm_messplus.demo.tasks import Task, generate


def run(
    *,
    url: str,
    key: str,
    model: str | None,
    labelling: Labelling,
    requests: int,
    seed: int,
    concurrent: int,
    as_json: bool,
    svg: Path | None,
) -> int:
    """Send the tasks of the seed, ``concurrent`` at once; print the table, or one JSON object.

    ``model`` is asked in place of the zoo that belongs to ``labelling``. Returns the exit status.
    Raises SystemExit where no proxy answers.
    """
    headers = {"authorization": f"Bearer {key}"}
    with (
        OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client,
        httpx.Client(base_url=f"{url}/messplus", headers=headers, timeout=30.0) as messplus,
    ):
        session = Session(client, messplus, model or labelling.zoo, labelling)
        try:
            report = _report(session, labelling, generate(requests, seed), requests, concurrent)
        except APIConnectionError as error:
            raise SystemExit(
                f"messplus: no proxy answers on {url}: start it with `make run`"
            ) from error
    _show(report, as_json, svg)
    return 0


def _report(
    session: Session, labelling: Labelling, tasks: Iterable[Task], requests: int, concurrent: int
) -> Report:
    with (
        Progress(console=Console(stderr=True)) as progress,
        ThreadPoolExecutor(concurrent) as threads,
    ):
        answered = threads.map(session.send, count(), tasks)
        sent = [
            request
            for request in progress.track(answered, total=requests, description="requests")
            if request is not None
        ]
        if not sent:
            raise SystemExit("messplus: none of the requests was routed: see the proxy's log")
        reported = _settle(session, sent, progress)
        found = threads.map(session.look_up, [request.request_id for request in sent])
        outcomes = list(progress.track(found, total=len(sent), description="outcomes"))
    return Report.of(labelling.mode, sent, outcomes, reported, unrouted=requests - len(sent))


def _settle(session: Session, sent: Sequence[Sent], progress: Progress) -> Reported:
    """What the proxy reports once the labels have come."""
    newest = session.look_up(sent[-1].request_id)
    bar = progress.add_task("labels", total=len(sent))

    def labelled() -> int:
        found = session.reported(newest, len(sent)).labelled
        progress.update(bar, completed=found or 0)
        return len(sent) if found is None else found

    wait_for_labels(labelled, len(sent))
    return session.reported(newest, len(sent))


def _show(report: Report, as_json: bool, svg: Path | None) -> None:
    if as_json:
        print(json.dumps(report.as_dict()))
        return
    console = Console(record=svg is not None)
    console.print(table(report))
    if svg is not None:
        console.save_svg(str(svg), title="messplus demo")
