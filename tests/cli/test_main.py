"""The command itself."""

from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app


@pytest.mark.parametrize("name", ["nosuch", "import"])
def test_another_name_is_no_command(name: str) -> None:
    assert CliRunner().invoke(app, [name]).exit_code == 2


def test_the_version_of_the_package_is_shown_alone() -> None:
    result = CliRunner().invoke(app, ["--version"])

    assert result.exit_code == 0
    assert result.output == f"litellm-messplus {version('litellm-messplus')}\n"
