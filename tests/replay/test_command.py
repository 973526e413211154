"""`messplus replay` from the command line to the table, the JSON and the picture."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from litellm_messplus.cli.before import replay
from tests.support.recordings import synthetic, write_synthetic

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
    result = run(*given, "--json", "--no-baselines")
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


def test_windows_are_reported_when_asked_for(files: list[str]) -> None:
    reported = found(files[0], "--window", "50")

    assert reported["window"] == 50
    assert {"d_window", "d_window_worst", "windows_below_two_points"} < set(reported)


def test_few_and_late_labels_are_taken(files: list[str]) -> None:
    plain = found(files[0])

    for option in (["--feedback", "0.5"], ["--delay", "3"]):
        assert found(files[0], *option)["cost_total"] != plain["cost_total"]


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
        (["--window", "500"], "--window: given 500"),
        (["--mix", "--in-order"], "--mix: given with"),
        (["--mix", "--concatenate"], "--mix: given with"),
        (["--feedback", "2"], "--feedback"),
        (["--delay", "-1"], "--delay"),
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
