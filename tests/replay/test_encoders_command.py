"""`messplus encoders` from the command line to the table and the JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from litellm_messplus.cli.main import app as messplus
from litellm_messplus.cli.replay import encoders
from tests.support.recordings import synthetic, write_synthetic

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(encoders)

OWN = "tests.support.recordings:ENCODER"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return [
        str(write_synthetic(tmp_path / f"{name}.csv", synthetic(60, seed=seed)))
        for seed, name in enumerate(("first", "second"))
    ]


def run(*given: str) -> Result:
    return CliRunner().invoke(app, [*given, "--alpha", "0.7", "--seeds", "1"])


def found(*given: str) -> Any:
    result = run(*given, "--json")
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def test_reading_is_compared_with_not_reading(files: list[str]) -> None:
    compared = found(files[0])

    assert compared["file"] == files[0]
    assert list(compared["encoders"]) == ["hashed-ngrams", "none"]


def test_any_encoder_can_be_given(files: list[str]) -> None:
    compared = found(files[0], "--encoder", OWN, "--encoder", "none", "--encoder", OWN)

    assert list(compared["encoders"]) == [OWN, "none"]


def test_several_files_are_a_list_each_with_its_alpha(files: list[str]) -> None:
    first, second = found(*files, "--alpha", "0.6")

    assert [first["file"], second["file"]] == files
    assert (first["alpha"], second["alpha"]) == (0.6, 0.7)


def test_a_mix_is_one_stream(files: list[str]) -> None:
    assert found(*files, "--mix")["requests"] == 120


def test_the_table(files: list[str]) -> None:
    result = run(files[0])

    assert result.exit_code == 0
    for words in ("hashed-ngrams", "none", "log-loss", "AUC", "ms/prompt", "60 requests"):
        assert words in result.stdout
    assert "runs" in result.stderr
    assert "runs" not in result.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--encoder", "no.such.module:encoder"], "--encoder: given 'no.such.module:encoder'"),
        (["--alpha", "0.5", "--alpha", "0.6"], "--alpha: given 3"),
        (["--alpha", "2"], "--alpha: given 2"),
    ],
)
def test_a_wrong_option_is_named(files: list[str], options: list[str], told: str) -> None:
    result = run(*files, *options)

    assert result.exit_code == 1
    assert told in str(result.exception)
    assert "allowed" in str(result.exception)


def test_it_is_a_command_of_messplus() -> None:
    result = CliRunner().invoke(messplus, ["encoders", "--help"])

    assert result.exit_code == 0
    assert "Compare encoders on recorded requests" in result.stdout
