"""``python -m examples.agent.run``: the same tasks with the zoo that holds them and the one that
does not, each task judged once, and what both come to."""

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import httpx
from openai import APIConnectionError, APIStatusError, OpenAI
from rich.console import Console
from rich.progress import track

from examples.agent.report import Report, table
from examples.agent.session import Session, Work
from examples.agent.tasks import Task, generate
from examples.serving import own_proxy
from examples.tiny_zoo.demo.session import refusal, refusal_of_route

FOLDER = Path(__file__).parent
ZOOS = ("agent-held", "agent-unheld")


def compare(url: str, key: str, tasks: Sequence[Task]) -> list[Report]:
    """Work on every task with all zoos, one after the other, and add up the result of each.

    Raises SystemExit where no proxy answers, or where it or the plugin refuses.
    """
    headers = {"authorization": f"Bearer {key}"}
    with (
        OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client,
        httpx.Client(base_url=f"{url}/messplus", headers=headers, timeout=30.0) as messplus,
    ):
        sessions = {zoo: Session(client, messplus, zoo) for zoo in ZOOS}
        done: dict[str, list[Work]] = {zoo: [] for zoo in ZOOS}
        try:
            for task in track(tasks, "tasks", console=Console(stderr=True)):
                for zoo, session in sessions.items():
                    done[zoo].append(session.work(task))
            return [
                Report.of(zoo, [(work, sessions[zoo].bill(work)) for work in done[zoo]])
                for zoo in ZOOS
            ]
        except APIConnectionError as error:
            raise SystemExit(f"no proxy answers on {url}") from error
        except APIStatusError as error:
            raise SystemExit(refusal(error, url)) from error
        except httpx.HTTPError as error:
            raise SystemExit(refusal_of_route(error, url)) from error


def main() -> None:
    """Read the command line, start a proxy unless one is given, and print the comparison."""
    parser = argparse.ArgumentParser(description="Compare an agent held on a model with one not.")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="One JSON object in place of a table.")
    parser.add_argument("--url", help="A proxy that runs on this example's configuration.")
    parser.add_argument("--key", help="Its key; needed with --url.")
    options = parser.parse_args()
    if options.tasks < 1:
        parser.error(f"--tasks is {options.tasks}; allowed: 1 and more")
    if (options.url is None) != (options.key is None):
        parser.error("--url and --key go together")
    given = nullcontext((options.url, options.key))
    with own_proxy(FOLDER) if options.url is None else given as (url, key):
        reports = compare(url, key, list(generate(options.tasks, options.seed)))
    if options.json:
        json.dump([report.as_dict() for report in reports], sys.stdout)
        print()
    else:
        Console().print(table(reports))


if __name__ == "__main__":
    main()
