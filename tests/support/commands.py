"""Commands of `messplus`, run in this process as a user runs them."""

from pathlib import Path

from typer.testing import CliRunner, Result

from litellm_messplus.cli.main import app


def run(*arguments: str | Path, columns: int = 200) -> Result:
    """Run a command in a terminal of that width."""
    given = [str(each) for each in arguments]
    return CliRunner().invoke(app, given, env={"COLUMNS": str(columns)})


def shown(*arguments: str | Path, columns: int = 200) -> str:
    """Return what a command that succeeds prints."""
    result = run(*arguments, columns=columns)
    assert result.exit_code == 0, result.exception
    return result.output


def refusal(*arguments: str | Path) -> str:
    """Return the one line that a user gets where a command refuses."""
    result = run(*arguments)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 1, result.output
    text = str(result.exception.code) if result.exception.code != 1 else result.output.strip()
    assert "\n" not in text
    assert text.startswith("messplus: ")
    return text
