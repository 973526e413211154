"""Everything that goes wrong is counted; the log gets one trace a minute of each kind."""

import logging
import re
from pathlib import Path

import pytest

import litellm_messplus
from litellm_messplus.runtime.counters import LOG_SECONDS, Counters


def test_counts_by_name_in_order() -> None:
    counters = Counters()
    for name in ("b", "a", "b"):
        counters.add(name)
    assert list(counters.as_dict().items()) == [("a", 1), ("b", 2)]


def test_nothing_counted_is_nothing_shown() -> None:
    assert Counters().as_dict() == {}


def test_every_failure_counts_and_the_first_of_a_minute_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("litellm_messplus.runtime.counters.time.monotonic", lambda: now)
    counters = Counters()
    for _ in range(5):
        counters.failure("routing_failures", "a request was not routed")
    assert len(caplog.records) == 1
    counters.failure("other_failures", "something else")
    assert len(caplog.records) == 2
    now += LOG_SECONDS
    counters.failure("routing_failures", "a request was not routed")
    assert caplog.messages[-1] == "a request was not routed (routing_failures so far: 6)"
    assert counters.as_dict() == {"other_failures": 1, "routing_failures": 6}


def test_the_log_shows_the_handled_exception(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise RuntimeError("the cause")
    except RuntimeError:
        Counters().failure("failures", "it failed")
    assert caplog.records[0].levelno == logging.WARNING
    assert "the cause" in caplog.text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\x0b", "\x85", "\u2028"], ids=ascii)
def test_no_logged_text_looks_like_another_line(caplog: pytest.LogCaptureFixture, end: str) -> None:
    """Where it is quoted, and where an exception quotes it."""
    forged = f"r1{end}14:00:00 - messplus:ERROR: forged \x1b[31m"
    try:
        raise ValueError(forged)
    except ValueError:
        Counters().failure("failures", f"no request is {forged}")

    first, *others = caplog.text.splitlines()
    assert "no request is r1\\" in first
    assert "forged" in "".join(others)
    assert all(line.startswith("    ") for line in others)
    assert "\x1b" not in caplog.text


def test_every_line_goes_through_one_logger() -> None:
    """What keeps a text in its line is attached to that one alone."""
    folder = Path(litellm_messplus.__file__).parent
    named = {
        name
        for path in folder.rglob("*.py")
        for name in re.findall(r"getLogger\((.*?)\)", path.read_text(encoding="utf-8"))
    }
    assert named == {'"litellm_messplus"'}
