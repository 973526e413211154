"""Commands of earlier versions: refused in one line, with what to type instead. And this one."""

import re
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import MOVED, app
from tests.support.markdown import ROOT


@pytest.mark.parametrize("command", MOVED)
def test_a_command_that_has_moved_says_what_to_type(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--port", "4001"])

    assert (
        str(result.exception) == f"messplus: no command {command} any more: type {MOVED[command]}"
    )
    for module in re.findall(r"`python -m ([\w.]+)", MOVED[command]):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()
    for name in re.findall(r"`messplus ([\w-]+)", MOVED[command]):
        assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0


def test_another_name_is_no_command() -> None:
    assert CliRunner().invoke(app, ["nosuch"]).exit_code == 2


def test_the_version_of_the_package_is_shown_alone() -> None:
    result = CliRunner().invoke(app, ["--version"])

    assert result.exit_code == 0
    assert result.output == f"litellm-messplus {version('litellm-messplus')}\n"
