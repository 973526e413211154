"""What is skipped for want of a Debian package says how to install it, and CI skips nothing."""

import re
from pathlib import Path

import pytest

from tests.support import packages
from tests.support.packages import PROGRAMS, program, summary

CI = (Path(__file__).parents[2] / ".ci" / "run").read_text("utf-8")


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(packages, "POSTGRES", str(tmp_path))


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize("package", PROGRAMS)
def test_without_its_package_it_is_skipped(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(packages.REQUIRE_ALL, raising=False)
    with pytest.raises(pytest.skip.Exception, match=f"apt-get install {package}"):
        program(package)


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize("package", PROGRAMS)
def test_where_all_is_required_it_fails(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(packages.REQUIRE_ALL, "1")
    with pytest.raises(pytest.fail.Exception, match=f"apt-get install {package}"):
        program(package)


def test_debians_postgres_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "15" / "bin" / "initdb"
    there.parent.mkdir(parents=True)
    there.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(packages, "POSTGRES", str(tmp_path))
    assert program("postgresql") == there


def test_one_line_says_how_to_install_all_of_them() -> None:
    reasons = ["Skipped: apt-get install prometheus", "needs a GPU"]
    reasons += 2 * ["Skipped: apt-get install chromium"]
    assert summary(reasons) == "skipped 3 tests: apt-get install chromium prometheus"
    assert summary(["needs a GPU"]) is None


def test_ci_requires_all_and_installs_what_is_missing() -> None:
    assert f"export {packages.REQUIRE_ALL}=1" in CI
    assert "-m tests.support.packages" in CI
    assert re.search(r"apt-get install .*\$missing\n", CI)
