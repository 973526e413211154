"""What `make` shows while it sets up a checkout: what it does, how far it is, why it failed."""

import io
import sys
from pathlib import Path

from examples.install import LOG, NEARLY, Bar, Step, carry_out, pinned, steps


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def prints(text: str, status: int = 0) -> list[str]:
    return [sys.executable, "-c", f"print({text!r}); raise SystemExit({status})"]


def test_it_first_says_what_it_does_and_for_how_long(tmp_path: Path) -> None:
    out = io.StringIO()
    plan = [Step("one", 60.0, prints("first")), Step("two", 120.0, prints("second"))]

    assert carry_out(plan, tmp_path, out) == 0
    first, *rest = out.getvalue().splitlines()
    assert first.endswith("once: about 3 minutes, more on a slow line.")
    assert rest[:2] == ["  one ...", "  two ..."]
    assert (tmp_path / LOG).read_text() == "first\nsecond\n"


def test_a_step_that_fails_ends_it_and_shows_what_was_printed(tmp_path: Path) -> None:
    out = io.StringIO()
    plan = [Step("one", 1.0, prints("no such package", 3)), Step("two", 1.0, prints("never"))]

    assert carry_out(plan, tmp_path, out) == 3
    assert "no such package" in out.getvalue()
    assert out.getvalue().endswith(f"messplus: one: failed, see {tmp_path / LOG}\n")
    assert "never" not in out.getvalue()


def test_the_bar_follows_what_pip_collects_and_installs() -> None:
    step = Step("all", 100.0, [])
    assert step.share(50.0, 0) == 0.5
    step.read("Collecting litellm[proxy]==1.108.7 (from x)")
    step.read("  Collecting litellm==1.108.7")
    collecting = step.share(50.0, 0)
    assert 0.0 < collecting < 0.01
    step.read("Installing collected packages: a, b, c, d")
    assert step.share(50.0, 0) == 0.5
    assert step.share(50.0, 2) == 0.75
    assert step.share(50.0, 4) == NEARLY


def test_the_bar_only_grows_and_stays_on_one_line() -> None:
    out, step = Terminal(), Step("one", 1.0, [])
    bar = Bar(out, 2.0)
    for share in (0.0, 0.5, NEARLY):
        bar.show(step, share)
    bar.end(step)
    bar.show(Step("two", 1.0, []), 0.0)

    drawn = out.getvalue().split("\r")[1:]
    filled = [line.count("#") for line in drawn]
    assert filled == sorted(filled)
    assert filled[-1] == 15
    assert "\n" not in out.getvalue()


def test_torch_is_installed_first_as_it_is_pinned(tmp_path: Path) -> None:
    torch = pinned("torch", ["# x", "litellm==1", "torch==2.13.0"])
    commands = [" ".join(step.command) for step in steps(tmp_path, torch)]

    assert torch == "torch==2.13.0"
    assert commands[2].endswith("torch==2.13.0")
    assert commands[3].endswith("--constraint constraints.txt --editable .[dev]")
