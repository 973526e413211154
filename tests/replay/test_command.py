"""`messplus replay` from the command line to the table, the JSON and the picture."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from litellm_messplus.cli.before import replay
from tests.replay.test_database import served_by, write
from tests.support.builders import LARGE, SMALL
from tests.support.recordings import synthetic, write_synthetic

OWN = "tests.support.recordings:ENCODER"

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(replay)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return [
        str(write_synthetic(tmp_path / f"{name}.csv", synthetic(120, seed=seed)))
        for seed, name in enumerate(("first", "second"))
    ]


def run(*given: str) -> Result:
    return CliRunner().invoke(app, [*given, "--alpha", "0.7", "--seeds", "2"])


def found(*given: str) -> Any:
    baselines = () if "--encoder" in given else ("--no-baselines",)
    result = run(*given, "--json", *baselines)
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def test_one_file_is_one_object(files: list[str]) -> None:
    assert found(files[0])["file"] == files[0]


def test_several_files_are_a_list(files: list[str]) -> None:
    first, second = found(*files)

    assert [first["file"], second["file"]] == files
    assert first == found(files[0])


@pytest.mark.parametrize("joining", ["--mix", "--concatenate"])
def test_one_stream_is_one_object(files: list[str], joining: str) -> None:
    joined = found(*files, joining)

    assert joined["requests"] == 240
    assert joined["file"] == " + ".join(files)


def test_every_file_may_have_its_alpha(files: list[str]) -> None:
    first, second = found(*files, "--alpha", "0.6")

    assert (first["alpha"], second["alpha"]) == (0.6, 0.7)


def test_what_a_log_does_not_tell_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "messplus.db", served_by(SMALL, 40) + served_by(LARGE, 40))

    reported = found(path)
    shown = " ".join(run(path, "--no-baselines").stdout.split())

    assert reported["requests"] == 80
    assert reported["notes"] == [
        "50% of all outcomes were never seen: drawn from those of alike prompts"
    ]
    assert "50% of all outcomes were never seen" in shown


def test_windows_are_reported_when_asked_for(files: list[str]) -> None:
    reported = found(files[0], "--window", "50", "--degrade", "large=small@0.5")

    assert reported["window"] == 50
    assert {
        "d_window",
        "d_window_worst",
        "windows_below_two_points",
        "d_window_after_degrade",
    } < set(reported)


def test_every_stress_is_taken(files: list[str]) -> None:
    stressed = ["--feedback", "0.5", "--feedback-bias", "2", "--delay", "3", "--flip", "0.1"]

    assert found(files[0], *stressed)["cost_total"] != found(files[0])["cost_total"]


def test_the_table_has_every_baseline(files: list[str]) -> None:
    result = run(files[0])

    assert result.exit_code == 0
    for row in (
        "policy adaptive",
        "policy paper",
        "educated guessing",
        "small",
        "large",
        "hindsight mix",
        "oracle",
    ):
        assert row in result.stdout
    assert "cost, J" in result.stdout or "cost, kJ" in result.stdout


def test_progress_is_kept_apart_from_the_result(files: list[str]) -> None:
    result = run(files[0], "--json", "--no-baselines")

    assert "runs" in result.stderr
    assert "runs" not in result.stdout


def test_a_picture_is_drawn(files: list[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "out.png"

    found(*files, "--plot", str(path))

    assert path.read_bytes().startswith(b"\x89PNG")


def test_encoders_are_compared_each_once(files: list[str]) -> None:
    first, second = found(*files, "--encoder", OWN, "--encoder", "none", "--encoder", OWN)
    mixed = run(*files, "--mix", "--encoder", "none")

    assert [first["file"], second["file"]] == files
    assert list(first["encoders"]) == [OWN, "none"]
    for words in ("none, alone", "log-loss", "AUC", "ms/prompt", "240 requests, 2 seeds"):
        assert words in mixed.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--policy", "best"], "--policy: given 'best'"),
        (["--policy", "paper", "--confidence", "0.9"], "--confidence: given with --policy paper"),
        (
            ["--policy", "paper", "--second-answer", "auto"],
            "--second-answer: given with --policy paper",
        ),
        (["--checker", "0.8"], "--checker: given alone"),
        (["--checker-cost", "0.1"], "--checker-cost: given alone"),
        (["--second-answer", "auto"], "--second-answer: given no columns of answers"),
        (["--alpha", "0.5", "--alpha", "0.6"], "--alpha: given 3"),
        (["--degrade", "a=b@0.5"], "--degrade: given 'a=b@0.5'"),
        (["--window", "500"], "--window: given 500"),
        (["--mix", "--in-order"], "--mix: given with"),
        (["--mix", "--concatenate"], "--mix: given with"),
        (["--flip", "2"], "--flip"),
        (["--delay", "-1"], "--delay"),
        (["--encoder", "no.such.module:encoder"], "--encoder: given 'no.such.module:encoder'"),
        (["--encoder", "none", "--flip", "0.1"], "--encoder: given with other options"),
        (["--encoder", "none", "--concatenate"], "--encoder: given with other options"),
        (["--encoder", "none", "--plot", "out.png"], "--encoder: given with other options"),
    ],
)
def test_a_wrong_option_is_named(files: list[str], options: list[str], told: str) -> None:
    result = run(*files, *options)

    assert result.exit_code != 0
    assert told in result.output + str(result.exception)


def test_a_picture_that_cannot_be_written_is_named(files: list[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    result = run(files[0], "--no-baselines", "--plot", str(tmp_path / "nowhere" / "out.png"))

    assert "--plot" in str(result.exception)
