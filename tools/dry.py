"""A release without its end: all that needs no network but the package index is done and checked.

    python -m tools.dry [--tag v0.2.0] [--demo]

Run by `make release-dry`, in an environment of its own (`tools/release.txt`). It builds what is
committed, not what lies in the folder, into `dist/release`: wheel and sdist, twice with the same
hashes; the wheel is installed into a new environment and routes a request there. `--demo` runs the
two commands of the README on it too, which takes minutes. Beside them lie the notes, the SBOM and
the licences of what the wheel brings along. Uploads, attestations and the image are left to
`.github/workflows/release.yml`, which is linted here.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tools.licences import vendored
from tools.notes import ROOT, Release, git, read_release
from tools.readme import run_commands

OUT = ROOT / "dist" / "release"
ENVIRONMENT = OUT / "venv"
WORKFLOWS = (".github/workflows/release.yml", ".github/workflows/ci.yml")
SCHEMAS = {
    ("--builtin-schema", "vendor.github-workflows"): WORKFLOWS,
    ("--builtin-schema", "vendor.compose-spec"): ("deploy/compose.yaml",),
    ("--schemafile", "deploy/helm-values.schema.json"): ("deploy/helm-values.yaml",),
}
"""Options of `check-jsonschema`, and the files that they check."""


def main() -> None:
    """Do all of it; the first step that fails ends it."""
    parser = argparse.ArgumentParser(prog="python -m tools.dry")
    parser.add_argument("--tag", help="the tag that is about to be made; else that of the commit")
    parser.add_argument("--demo", action="store_true", help="run the README's commands too")
    options = parser.parse_args()

    release = read_release(options.tag)
    report(f"version {release.version}, {release.tag or 'no tag yet'}; the changelog has its notes")
    if changed := git("status", "--porcelain", "--untracked-files=no"):
        report(f"left out, since they are not committed: {len(changed.splitlines())} changed files")
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    (OUT / "notes.md").write_text(release.notes + "\n", "utf-8")
    wheel = build_twice()
    lint()
    install(wheel)
    describe(release)
    with tempfile.TemporaryDirectory() as elsewhere:  # not in the checkout, which would be imported
        run(ENVIRONMENT / "bin" / "python", ROOT / ".ci" / "try_wheel.py", folder=Path(elsewhere))
        report("the wheel, installed alone, routes a request and counts a verdict")
        if options.demo:
            run("tar", "xf", export(Path(elsewhere)), "examples", folder=Path(elsewhere))
            install(wheel, "transformers")
            run_commands(ENVIRONMENT / "bin" / "python", Path(elsewhere), outside())
            report("the two commands of the README run on the wheel")
    report(f"all is in {OUT.relative_to(ROOT)}; not done here: uploads, attestations, the image")


# Building.


def build_twice() -> Path:
    """Build in two folders, and return the wheel. Raises SystemExit where the files differ."""
    epoch = {"SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct")}
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        built = [build(Path(folder), epoch) for folder in (first, second)]
        hashes = [{path.name: hash_of(path) for path in paths} for paths in built]
        if hashes[0] != hashes[1]:
            raise SystemExit(f"release: two builds differ: {hashes[0]} and {hashes[1]}")
        for path in built[0]:
            shutil.copy(path, OUT)
    sums = "".join(f"{digest}  {name}\n" for name, digest in sorted(hashes[0].items()))
    (OUT / "SHA256SUMS").write_text(sums, "utf-8")
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(map(str, OUT.glob("lite*"))))
    report(f"built twice, with the same hashes:\n{sums.rstrip()}")
    (wheel,) = OUT.glob("*.whl")
    return wheel


def build(folder: Path, environment: Mapping[str, str]) -> list[Path]:
    """Build a wheel, from an sdist, of what is committed; return both."""
    source, out = folder / "source", folder / "out"
    source.mkdir()
    with tarfile.open(export(folder)) as archive:
        archive.extractall(source, filter="data")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    run(*command, folder=folder, environment=environment)
    return sorted(out.iterdir())


def export(folder: Path) -> Path:
    """Write what is committed into an archive in the folder."""
    archive = folder / "source.tar"
    git("archive", f"--output={archive}", "HEAD")
    return archive


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


# What is installed, and what it consists of.


def install(wheel: Path, extra: str = "postgres") -> None:
    """Install the wheel with an extra, into a new environment at first."""
    if not ENVIRONMENT.exists():
        run(sys.executable, "-m", "venv", ENVIRONMENT)
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    run(ENVIRONMENT / "bin" / "pip", "install", "--quiet", *constraints, f"{wheel}[{extra}]")


def describe(release: Release) -> None:
    """Write the SBOM and the licences of the new environment."""
    python = ENVIRONMENT / "bin" / "python"
    sbom = OUT / f"litellm-messplus-{release.version}.cdx.json"
    options = ["--output-reproducible", "--validate", "--pyproject", str(ROOT / "pyproject.toml")]
    tool = [sys.executable, "-m", "cyclonedx_py", "environment"]
    run(*tool, *options, "--output-file", sbom, python)
    name_vendored(sbom)
    done = run(python, ROOT / "tools" / "licences.py", "--check")
    (OUT / "licences.md").write_text(done, "utf-8")
    report(f"SBOM: {sbom.name}; the licences of all that is installed are known")


def name_vendored(sbom: Path) -> None:
    """Add to the SBOM what the wheel itself holds of others."""
    found = json.loads(sbom.read_text("utf-8"))
    for name, (version, licence) in vendored().items():
        purl = f"pkg:npm/{name.lower()}@{version}"
        known = {"type": "library", "name": name, "version": version, "purl": purl}
        licences = [{"license": {"id": licence}}]
        found["components"].append(known | {"bom-ref": purl, "licenses": licences})
    sbom.write_text(json.dumps(found, indent=2) + "\n", "utf-8")


# Checks of what runs elsewhere.


def lint() -> None:
    """Lint the workflows, and hold the files for operators against the schemas of their readers."""
    tools = Path(sys.executable).parent
    run(tools / "zizmor", "--offline", "--quiet", *WORKFLOWS)
    for schema, files in SCHEMAS.items():
        run(tools / "check-jsonschema", *schema, *files)
    linters = ["zizmor", "the schemas of GitHub, Compose and LiteLLM's chart"]
    if shutil.which("actionlint"):
        run("actionlint", *WORKFLOWS)
        linters.append("actionlint")
    report(f"workflows and deploy/ pass {', '.join(linters)}")


def run(
    *command: str | Path, folder: Path = ROOT, environment: Mapping[str, str] | None = None
) -> str:
    """Run a command and return what it prints. Raises SystemExit with its output if it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**outside(), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        words = " ".join(map(str, command))
        raise SystemExit(f"release: {words}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def outside() -> dict[str, str]:
    """Return the variables of this process without those that would import the checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def report(line: str) -> None:
    """Print a line with the seconds since the start."""
    print(f"[{time.monotonic() - STARTED:5.1f} s] {line}", flush=True)


STARTED = time.monotonic()

if __name__ == "__main__":
    main()
