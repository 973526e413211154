"""``python -m examples.install .venv``: set up the environment of a checkout, with a bar.

`make` runs it where there is none yet, with the Python of the machine: so nothing but what Python
itself has is imported. What pip prints goes into a log, whose end is shown where a step fails.
"""

import argparse
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).parents[1]
LOG = "install.log"
LAST_LINES = 40
LOOK_SECONDS = 0.3
WIDTH = 30
"""Characters of the bar."""
NEARLY = 0.95
"""How far a step can be before it has ended."""
COLLECTED = 190
"""How many packages are collected, about: the number is known only once they are."""
PIP = ("--disable-pip-version-check", "--progress-bar", "off", "--no-input")


@dataclass
class Step:
    """One command; ``seconds`` is what it takes on a quiet machine, about. ``read`` and ``done``
    turn the lines that it prints, and the environment, into the share that is done."""

    name: str
    seconds: float
    command: Sequence[str]
    collected: set[str] = field(default_factory=set)
    announced: int = 0

    def read(self, line: str) -> None:
        """Read a line of the command's output."""
        if found := re.match(r"\s*Collecting ([\w.-]+)", line):
            self.collected.add(found[1].lower())
        elif line.startswith("Installing collected packages:"):
            self.announced = line.count(",") + 1

    def share(self, elapsed: float, installed: int) -> float:
        """Return how much is done: after so many seconds, and with so many packages installed by
        this step."""
        if self.announced:
            return min(NEARLY, 0.5 + 0.5 * installed / self.announced)
        if self.collected:
            return min(0.5, 0.5 * len(self.collected) / COLLECTED)
        return min(NEARLY, elapsed / self.seconds)


class Bar:
    """A bar on one line of a terminal; elsewhere a line for each step. ``total`` is in seconds."""

    def __init__(self, out: TextIO, total: float) -> None:
        self._out = out
        self._total = total
        self._done = 0.0
        self._began = time.monotonic()

    def begin(self, step: Step) -> None:
        """Name the step that begins."""
        if not self._out.isatty():
            self._say(f"  {step.name} ...\n")

    def show(self, step: Step, share: float) -> None:
        """Draw how far all is, with that share of the step done."""
        if self._out.isatty():
            done = (self._done + share * step.seconds) / self._total
            bar = "#" * int(WIDTH * done) + "." * (WIDTH - int(WIDTH * done))
            minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
            self._say(f"\r  [{bar}] {done:4.0%} {minutes}:{seconds:02} {step.name}\x1b[K")

    def end(self, step: Step) -> None:
        """Count the step as done."""
        self._done += step.seconds

    def close(self) -> None:
        """Leave the line, and say how long all took."""
        took = time.monotonic() - self._began
        self._say(("\r\x1b[K" if self._out.isatty() else "") + f"  set up in {took:.0f} s\n")

    def _say(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def steps(folder: Path, torch: str) -> list[Step]:
    """List what has to be done. torch comes first: asked for by a range, pip may pick another, much
    larger build."""
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", *PIP]
    everything = ["--constraint", "constraints.txt", "--editable", ".[dev]"]
    return [
        Step("an empty environment", 5.0, [sys.executable, "-m", "venv", str(folder)]),
        Step("pip", 4.0, [*pip, "--upgrade", "pip"]),
        Step("torch for CPUs", 30.0, [*pip, torch]),
        Step("LiteLLM, the plugin and all that is tested with", 120.0, [*pip, *everything]),
    ]


def pinned(name: str, lines: Iterable[str]) -> str:
    """Return the requirement of that name. Raises StopIteration if there is none."""
    return next(line.strip() for line in lines if line.startswith(f"{name}=="))


def packages(folder: Path) -> int:
    """Count what is installed in an environment."""
    return sum(1 for _ in folder.glob("lib/python*/site-packages/*.dist-info"))


def follow(step: Step, log: TextIO, folder: Path, bar: Bar) -> int:
    """Run a step, showing how far it is; return its exit status."""
    began, before = time.monotonic(), packages(folder)
    with subprocess.Popen(
        step.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        reader = threading.Thread(target=_read, args=(process.stdout, step, log), daemon=True)
        reader.start()
        while process.poll() is None:
            bar.show(step, step.share(time.monotonic() - began, packages(folder) - before))
            time.sleep(LOOK_SECONDS)
        reader.join()
    return process.returncode


def _read(printed: Iterable[str], step: Step, log: TextIO) -> None:
    for line in printed:
        log.write(line)
        step.read(line)


def carry_out(plan: Sequence[Step], folder: Path, out: TextIO) -> int:
    """Run the steps, and return the exit status: that of the first one that fails."""
    total = sum(step.seconds for step in plan)
    minutes = f"about {total / 60.0:.0f} minutes, more on a slow line"
    out.write(f"Setting up {folder.name}, once: {minutes}.\n")
    out.flush()
    bar, path = Bar(out, total), folder / LOG
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as log:
        for step in plan:
            bar.begin(step)
            if status := follow(step, log, folder, bar):
                log.flush()
                last = path.read_text("utf-8", errors="replace").splitlines()[-LAST_LINES:]
                out.write("\n".join(["", *last, f"messplus: {step.name}: failed, see {path}", ""]))
                return status
            bar.end(step)
    bar.close()
    return 0


def main() -> int:
    """Set up the folder, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.absolute()
    torch = pinned("torch", (ROOT / "constraints.txt").read_text("utf-8").splitlines())
    return carry_out(steps(folder, torch), folder, sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
