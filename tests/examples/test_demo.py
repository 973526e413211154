"""`make demo` against what `make run` serves, with each kind of labels."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.patience import PATIENT, until
from tests.support.ports import free_port

pytestmark = pytest.mark.end_to_end

REPOSITORY = Path(__file__).parents[2]
REQUESTS = 30
ENOUGH = 120
"""Requests over which routing saves more than the first explorations cost."""


@dataclass(frozen=True)
class Served:
    """A running `make run`."""

    url: str
    key: str
    log: Path

    def demo(self, mode: str, *arguments: str) -> dict[str, Any]:
        """The report of a demo as JSON."""
        found: dict[str, Any] = json.loads(self.shown("--labels", mode, "--json", *arguments))
        return found

    def shown(self, *arguments: str) -> str:
        """What a demo prints."""
        command = [sys.executable, "-m", "examples.tiny_zoo.demo"]
        command += ["--url", self.url, "--key", self.key, "--requests", str(REQUESTS)]
        ended = subprocess.run(
            [*command, *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """In a folder of its own, with a database and a key of its own."""
    folder, port = tmp_path_factory.mktemp("up"), free_port()
    command = [sys.executable, "-m", "examples.up", "--port", str(port)]
    command += ["--zoo-port", str(free_port()), "--folder", str(patient_zoo(folder))]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    environment.pop("LITELLM_MASTER_KEY", None)
    log, url = folder / "up.log", f"http://127.0.0.1:{port}"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output
        ) as process,
    ):
        try:
            until(lambda: process.poll() is not None or is_live(url), log.read_text)
            key = (folder / "var/master_key").read_text().strip()
            yield Served(url, key, log)
        finally:
            process.send_signal(signal.SIGTERM)
            ended = process.wait(timeout=PATIENT)
    assert ended == 0, log.read_text()[-4000:]


def patient_zoo(folder: Path) -> Path:
    """The tiny zoo, whose decisions may take as long as they do on a busy machine."""
    tiny_zoo, found = REPOSITORY / "examples" / "tiny_zoo", folder / "tiny_zoo"
    found.mkdir()
    (found / "models").symlink_to(tiny_zoo / "models")
    config = yaml.safe_load((tiny_zoo / "proxy_config.yaml").read_text())
    config["messplus"]["deadline_seconds"] = PATIENT
    (found / "proxy_config.yaml").write_text(yaml.safe_dump(config))
    return found


def is_live(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/liveliness", timeout=2).status_code == 200
    except httpx.TransportError:
        return False


def test_the_start_says_what_it_does_and_passes_prints_on(served: Served) -> None:
    until(lambda: f"page        {served.url}/messplus/ui" in served.log.read_text())
    first, *rest = served.log.read_text().splitlines()

    assert first == "Serving tiny_zoo behind LiteLLM: ready in about 15 seconds."
    assert any("litellm-messplus" in line for line in rest)


def test_it_ends_with_a_link_that_signs_in_to_the_page(served: Served) -> None:
    *_, last = served.shown().splitlines()

    assert last.startswith(f"The page: {served.url}/messplus/ui/#code=")


def test_feedback_on_everything_reports_the_truth(served: Served) -> None:
    found = served.demo("all", "--requests", str(ENOUGH))

    assert (found["labels"], found["labelled"], found["requests"]) == ("all", 1.0, ENOUGH)
    assert found["satisfaction_reported"] == pytest.approx(found["satisfaction"])
    assert found["satisfaction_low"] < found["satisfaction"] < found["satisfaction_high"]
    assert sum(found["model_mix"].values()) == pytest.approx(1.0)
    assert 0.0 < found["cost"] < found["cost_largest"]


def test_checks_report_the_truth_without_feedback(served: Served) -> None:
    found = served.demo("checks", "--concurrent", "3")

    assert (found["labels"], found["requests"]) == ("checks", REQUESTS)
    # On a busy machine a check may be given up on.
    assert found["labelled"] >= 0.9
    assert found["satisfaction_reported"] == pytest.approx(found["satisfaction"], abs=0.1)


def test_a_judge_labels_every_answer_in_the_end(served: Served) -> None:
    found = served.demo("judge")

    assert (found["labels"], found["labelled"]) == ("judge", 1.0)
    # It errs on less than one in ten answers; three times as often is out of the question.
    assert found["satisfaction_reported"] == pytest.approx(found["satisfaction"], abs=0.3)


def test_bought_labels_are_paid_and_told_apart(served: Served) -> None:
    found = served.demo("auto")

    assert found["labels"] == "auto"
    assert found["cost_judging"] is not None
    paid = found["cost"] + found["cost_judging"]
    assert found["times_largest"] == pytest.approx(paid / found["cost_largest"])


def test_a_crowd_says_little(served: Served) -> None:
    found = served.demo("feedback:0.3", "--seed", "2")

    assert 0.0 < found["labelled"] < 1.0
    assert found["satisfaction_low"] < found["satisfaction_reported"] < found["satisfaction_high"]


def test_every_model_asked_aside_tells_the_best_choices_cost(served: Served) -> None:
    found = served.demo("all", "--ask-all", "--concurrent", "2", "--seed", "3")

    assert found["hindsight_note"] is None
    assert 0.0 < found["cost_oracle"] < found["cost_hindsight_mix"]
    # What was asked aside is no request of the zoo.
    assert found["requests"] == REQUESTS
