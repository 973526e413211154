"""`messplus demo`: real requests through the proxy, every answer checked, and what it comes to."""

import json
from pathlib import Path

from openai import APIConnectionError, OpenAI
from rich.console import Console
from rich.progress import Progress

from litellm_messplus.demo.report import Report, table
from litellm_messplus.demo.session import Session
from litellm_messplus.demo.tasks import generate


def run(
    *, url: str, key: str, model: str, requests: int, seed: int, as_json: bool, svg: Path | None
) -> int:
    """Send the tasks of the seed one after the other; print the table, or one JSON object.

    Returns the exit status. Raises SystemExit where no proxy answers.
    """
    with OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client:
        session = Session(client, url, key, model)
        try:
            with session, Progress(console=Console(stderr=True)) as progress:
                for task in progress.track(
                    generate(requests, seed), total=requests, description="requests"
                ):
                    session.send(task)
                report = Report.of(session.outcomes())
        except APIConnectionError as error:
            raise SystemExit(
                f"messplus: no proxy answers on {url}: start it with `make run`"
            ) from error
    if as_json:
        print(json.dumps(report.as_dict()))
    else:
        console = Console(record=svg is not None)
        console.print(table(report))
        if svg is not None:
            console.save_svg(str(svg), title="messplus demo")
    return 0
