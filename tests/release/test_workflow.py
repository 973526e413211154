"""The workflow of a release does what `make release-dry` tries, and takes no more rights than it
needs. `make release-dry` lints it."""

import re
from typing import Any

import pytest
import yaml

from tests.support.markdown import ROOT

FOLDER = ROOT / ".github" / "workflows"
TEXTS = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.yml")}
RELEASE: dict[str, Any] = yaml.safe_load(TEXTS["release.yml"])
JOBS: dict[str, Any] = RELEASE["jobs"]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


@pytest.mark.parametrize("name", TEXTS)
def test_every_action_is_pinned_by_a_commit_beside_its_version(name: str) -> None:
    used = re.findall(r"uses: (.*)", TEXTS[name])

    assert used
    unpinned = [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", each)]
    assert unpinned == []


def test_an_action_has_the_same_commit_wherever_it_is_used() -> None:
    used = set(re.findall(r"uses: ([\w./-]+)@(\S+)", "\n".join(TEXTS.values())))

    assert len({action for action, _ in used}) == len(used)


def test_it_is_dispatched_with_a_version_that_no_command_takes_for_code() -> None:
    by_key: dict[Any, Any] = {**RELEASE}
    trigger = by_key[True]  # as YAML 1.1 reads `on`
    assert list(trigger) == ["workflow_dispatch"]
    assert list(trigger["workflow_dispatch"]["inputs"]) == ["version"]
    for job in JOBS.values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")


def test_only_what_uploads_may_write_and_it_waits_for_somebody_to_agree() -> None:
    assert RELEASE["permissions"] == {}
    writes = {
        name: {right for right, may in job["permissions"].items() if may == "write"}
        for name, job in JOBS.items()
    }

    assert writes == {
        "build": set(),
        "packages": {"id-token", "attestations"},
        "image": {"packages", "id-token", "attestations"},
        "release": {"contents"},
        "site": {"contents"},
    }
    assert {name for name, job in JOBS.items() if job.get("environment") == "release"} == {
        "packages",
        "image",
    }
    assert "secrets." not in TEXTS["release.yml"]


def test_nothing_is_uploaded_before_it_was_tried_and_the_tag_comes_last() -> None:
    assert JOBS["packages"]["needs"] == JOBS["image"]["needs"] == "build"
    assert set(JOBS["release"]["needs"]) == {"packages", "image"}
    assert JOBS["site"]["needs"] == "release"
    assert any("make release-dry" in step.get("run", "") for step in JOBS["build"]["steps"])


def test_the_commands_of_make_that_it_calls_are_there() -> None:
    called = set(re.findall(r"\bmake ([a-z-]+)", TEXTS["release.yml"]))

    assert {"release-dry", "site"} <= called
    for target in called:
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target


def test_the_images_that_it_fixes_are_arguments_of_the_dockerfile() -> None:
    fixed = re.findall(r"fixed ([A-Z]+)\)", TEXTS["release.yml"])
    dockerfile = (ROOT / "deploy/Dockerfile").read_text("utf-8")

    assert sorted(fixed) == ["LITELLM", "UV"]
    for name in fixed:
        assert re.search(rf"^ARG {name}=\S+:\S+$", dockerfile, re.MULTILINE)


def test_the_image_says_what_it_is_and_is_named_by_its_digest() -> None:
    (labels,) = (
        step["with"]["labels"].splitlines()
        for step in JOBS["image"]["steps"]
        if step.get("id") == "labels"
    )
    named = dict(line.split("=", 1) for line in labels)

    assert named["org.opencontainers.image.version"] == "${{ inputs.version }}"
    assert named["org.opencontainers.image.licenses"] == "Apache-2.0"
    base = named["org.opencontainers.image.base.name"]
    assert base == "${{ steps.names.outputs.litellm }}"  # with its digest
    (last,) = (step for step in JOBS["release"]["steps"] if "run" in step)
    assert last["env"]["IMAGE"].endswith("@${{ needs.image.outputs.digest }}")
