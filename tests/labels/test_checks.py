"""The label source of checks: each gives a label of its own, and none can do harm."""

import asyncio
import sys
from contextvars import ContextVar
from typing import Any

import pytest

from litellm_messplus.labels.checks import source
from litellm_messplus.labels.checks.check import Check, CheckTimeoutError, Score
from litellm_messplus.labels.checks.source import WAITING, Checks, build_checks
from litellm_messplus.labels.source import Answer, AnsweredCall, Cause, Finding, Finish
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.settings.labels import ChecksSettings
from tests.support.checking import ended

HERE = __name__
NOTHING_CALLABLE = 7
whose_request: ContextVar[str | None] = ContextVar("whose_request", default=None)


def praise(call: AnsweredCall) -> bool:
    return True


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])


class Scripted:
    """Says, raises or waits for what it is given."""

    def __init__(self, name: str, outcome: Score | Exception | asyncio.Event | None) -> None:
        self.name = name
        self.outcome = outcome
        self.whose: list[str | None] = []

    async def check(self, call: AnsweredCall) -> Score | None:
        self.whose.append(whose_request.get())
        if isinstance(self.outcome, asyncio.Event):
            await self.outcome.wait()
            return Score(1.0)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Desk:
    """Checks, and what they found."""

    def __init__(self, *checks: Check) -> None:
        self.found: list[Finding] = []
        self.counters = Counters()
        self.checks = Checks(checks, self.found.append, self.counters)

    async def show(self, *calls: AnsweredCall) -> list[Finding]:
        for call in calls:
            self.checks.ended(call)
        await self.checks.close()
        return self.found


async def test_each_check_that_has_something_to_say_gives_a_label_of_its_own() -> None:
    desk = Desk(
        Scripted("one", Score(1.0)),
        Scripted("two", Score(0.25, "so")),
        Scripted("three", None),
    )

    found = await desk.show(ended())

    ids, cause = ("request.0", "request", LabelKind.CHECK), Cause("zoo", "default", None)
    assert found == [
        Finding(*ids, "check:one", 1.0, 1.0, None, cause=cause),
        Finding(*ids, "check:two", 0.25, 1.0, "so", cause=cause),
    ]


async def test_every_call_of_an_exploration_is_checked() -> None:
    desk = Desk(Scripted("one", Score(1.0)))

    found = await desk.show(ended(), ended(is_served=False))

    assert [finding.call_id for finding in found] == ["request.0", "request.1"]


async def test_a_check_that_fails_gives_no_label(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(
        Scripted("broken", RuntimeError("no such column")),
        Scripted("late", CheckTimeoutError()),
        Scripted("sound", Score(1.0)),
    )

    found = await desk.show(*(ended() for _ in range(5)))

    assert [finding.source for finding in found] == ["check:sound"] * 5
    assert desk.counters.as_dict() == {"check_failures": 5, "checks_timed_out": 5}
    assert len(caplog.records) == 2
    assert "no such column" in caplog.text


async def test_checks_do_not_pile_up_and_a_slow_one_holds_up_no_other() -> None:
    gate = asyncio.Event()
    desk = Desk(Scripted("slow", gate), Scripted("fast", Score(1.0)))
    for _ in range(WAITING):
        desk.checks.ended(ended())
    for _ in range(3):  # what is fast ends, and is forgotten
        await asyncio.sleep(0)
    desk.checks.ended(ended())
    gate.set()
    await desk.checks.close()

    sources = [finding.source for finding in desk.found]
    assert sources.count("check:slow") == WAITING
    assert sources.count("check:fast") == WAITING + 1
    assert desk.counters.as_dict() == {"checks_left_out": 1}


async def test_the_end_waits_for_checks_for_moments_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "CLOSE_SECONDS", 0.01)
    desk = Desk(Scripted("never", asyncio.Event()), Scripted("sound", Score(1.0)))

    found = await desk.show(ended())

    assert [finding.source for finding in found] == ["check:sound"]


async def test_a_check_is_no_part_of_the_users_request() -> None:
    check = Scripted("one", None)
    whose_request.set("the user's")

    await Desk(check).show(ended())

    assert check.whose == [None]


def build(**given: Any) -> Checks | None:
    settings = ChecksSettings.model_validate(given)
    return build_checks(settings, "llama", lambda finding: None, Counters())


async def test_the_settings_say_which_checks_there_are() -> None:
    own = f"{HERE}:praise"
    settings = ChecksSettings.model_validate(
        {"complete": True, "json_schema": True, "callables": {"own": own}}
    )
    found: list[Finding] = []
    checks = build_checks(settings, "llama", found.append, Counters())
    assert checks is not None
    parameters = {"response_format": {"type": "json_object"}}
    cut_off = Answer("[42", finish=Finish.LENGTH)

    checks.ended(ended(cut_off, parameters=parameters))
    await checks.close()

    assert {finding.source: finding.value for finding in found} == {
        "check:complete": 0.0,
        "check:json_schema": 0.0,
        "check:own": 1.0,
    }


def test_without_a_check_there_is_no_source() -> None:
    assert build() is None
    assert build(complete=False) is None


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("no.such.module:check", "No module named 'no'"),
        (f"{HERE}:nothing", "has no attribute 'nothing'"),
        (f"{HERE}:NOTHING_CALLABLE", "this is of type int"),
    ],
)
def test_a_function_that_cannot_be_called_stops_the_start(path: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as raised:
        build(callables={"own": path})
    assert raised.value.key == "messplus.zoos.llama.labels.checks.callables.own"
    assert raised.value.given == path


@pytest.mark.parametrize("name", ["complete", "json_schema"])
def test_a_function_cannot_go_by_the_name_of_another_check(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"callables.{name}"):
        build(callables={name: f"{HERE}:praise"})
