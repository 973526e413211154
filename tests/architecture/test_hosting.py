"""What runs outside of the tests: the Makefile, hosted checks, hooks, and the values for Helm."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.support_table import releases
from litellm_messplus.serving.deployments.index import build_zoos
from litellm_messplus.serving.litellm_fit import ATTACKERS, NEWEST, OLDEST, release
from litellm_messplus.settings.load import load_settings

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())


def steps(job: str) -> str:
    """All that a job runs, as one text."""
    return "\n".join(step.get("run", "") for step in WORKFLOW["jobs"][job]["steps"])


def test_hosted_checks_cover_every_python_that_is_promised() -> None:
    promised = [
        found[1]
        for line in PROJECT["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))
    ]

    assert WORKFLOW["jobs"]["test"]["strategy"]["matrix"] == {
        "python": promised,
        "litellm": ["lowest", "pinned", "1.109.1", "newest"],
        "database": ["sqlite", "postgres"],
    }


def test_hosted_checks_run_every_line_of_litellm_from_the_lowest_to_the_newest() -> None:
    named = releases()
    chosen = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["litellm"]
    minors = {release(named.get(each, each))[1] for each in chosen}

    assert minors == set(range(release(OLDEST)[1], release(NEWEST)[1] + 1))
    assert "litellm==${{ matrix.litellm }}/" in steps("test")


def test_the_lowest_litellm_is_the_one_that_is_allowed() -> None:
    (allowed,) = (
        found[1]
        for each in PROJECT["dependencies"]
        if (found := re.fullmatch(r"litellm\[proxy\]>=([\d.]+)", each))
    )

    assert allowed == OLDEST
    assert ci_litellm("oldest").stdout == f"{OLDEST}\n"
    assert "$(.ci/litellm oldest)/" in steps("test")
    assert re.search(r"^litellm==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)


@pytest.mark.parametrize(("installed", "is_new"), [("1.9.99", 0), (NEWEST, 1), ("9.0.0", 1)])
def test_hosted_checks_fail_where_the_newest_litellm_is_older_than_what_is_tested(
    installed: str, is_new: int, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho {installed}\n")
    python.chmod(0o755)
    found = ci_litellm("is-newest", str(python))

    assert found.returncode == 1 - is_new
    assert installed in found.stdout
    assert ".ci/litellm is-newest" in steps("test")


def ci_litellm(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / ".ci/litellm"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_hosted_checks_call_what_is_called_here() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    called = re.findall(r"\bmake ([a-z-]+)", steps("test") + (ROOT / ".ci/run").read_text())

    assert ".ci/run" in steps("test")
    assert (
        {"test", "test-all", "test-litellm", "test-faults", "test-vllm", "wheel"}
        <= set(called)
        <= targets
    )


def test_the_readme_names_the_tests_that_are_run() -> None:
    readme = re.findall(r"^make (test[a-z-]*)", (ROOT / "README.md").read_text(), re.MULTILINE)
    run = re.findall(r"^ *make (test[a-z-]*)", (ROOT / ".ci/run").read_text(), re.MULTILINE)

    assert readme == ["test", "test-all", "test-litellm", "test-faults", "test-vllm"]
    # The real proxies of test-all are tried once: where test-litellm runs, only the rest of it.
    assert [name for name in run if name != "test-long"] == readme


def test_hooks_are_the_commands_of_make_check() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert recipe is not None
    lines = [line.strip().removesuffix(" .") for line in recipe[1].splitlines()]

    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in repository["hooks"]] == [
        line.replace("$(VENV)", ".venv") for line in lines
    ]


@pytest.mark.parametrize("variable", ["LONG", "FIRST"])
def test_the_tests_that_the_makefile_names_are_there(variable: str) -> None:
    found = re.search(rf"^{variable} := ((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)
    assert found is not None

    for named in found[1].replace("\\\n", " ").split():
        path, _, function = named.partition("::")
        assert f"def {function}" in (ROOT / path).read_text(), named


def test_the_configuration_in_the_values_for_helm_can_be_honoured() -> None:
    values = yaml.safe_load((ROOT / "deploy/helm-values.yaml").read_text())
    config = values["proxy_config"]
    config["messplus"]["database"] = "postgresql+asyncpg://messplus@host/messplus"

    assert build_zoos(load_settings(config), config["model_list"])
    assert values["image"]["tag"] == PROJECT["version"]


IMAGES = re.compile(r"ghcr\.io/berriai/litellm(?!-helm)[a-z_-]*(?:[:@](\S+))?")
"""LiteLLM's images, with the tag or the digest; its chart is none."""
FIXED = re.compile(r"v(\d+\.\d+\.\d+)|sha256:[0-9a-f]{64}|TAG\W?")
"""A release, a digest, or the word of an example."""


@pytest.mark.parametrize(
    "path",
    [
        ROOT / "README.md",
        *(ROOT / "deploy").iterdir(),
        *ROOT.glob("docs/*.md"),
    ],
    ids=lambda path: path.name,
)
def test_litellms_image_is_named_by_a_release_that_does_not_move(path: Path) -> None:
    tags = IMAGES.findall(path.read_text())

    assert [each for each in tags if not FIXED.fullmatch(each)] == []


def test_the_image_is_built_on_a_litellm_that_is_taken() -> None:
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    base = re.search(r"^ARG LITELLM=ghcr\.io/berriai/litellm:v(\S+)$", dockerfile, re.MULTILINE)

    assert base is not None
    assert release(OLDEST) <= release(base[1]) <= release(NEWEST)
    assert base[1] != ATTACKERS


def test_the_image_copies_what_is_there() -> None:
    lines = (ROOT / "deploy/Dockerfile").read_text().splitlines()
    copied = [name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]]

    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
