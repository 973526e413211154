"""`messplus --version`."""

from importlib.metadata import version

from typer.testing import CliRunner

from litellm_messplus.cli.main import app


def test_the_version_of_the_package_is_shown_alone() -> None:
    result = CliRunner().invoke(app, ["--version"])

    assert (result.exit_code, result.output) == (
        0,
        f"litellm-messplus {version('litellm-messplus')}\n",
    )
