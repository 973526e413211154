"""Answered calls, and a scripted judge that says what a test tells it to."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from litellm_messplus.core.encoder import Conversation, Turn
from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.labels.judge.asking import (
    GRADING_SECONDS,
    Asking,
    Grader,
    JudgeCost,
    JudgeSinks,
    Reply,
)
from litellm_messplus.labels.judge.budget import GRADINGS_PER_DAY, JudgeBudget, Spent
from litellm_messplus.labels.judge.judge import Judge
from litellm_messplus.labels.judge.prompts import Message
from litellm_messplus.labels.source import Answer, AnsweredCall, Finding, Finish, JudgedRequest
from litellm_messplus.records import GradingRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.settings.labels import BuyingSettings
from tests.support import judge

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
REQUEST = JudgedRequest(
    request_id="r1",
    zoo="zoo",
    service_level="default",
    key_hash=None,
    conversation=Conversation((Turn("system", "be brief"), Turn("user", "what is 6 times 7?"))),
    parameters={},
    metadata={},
)


def call(
    request_id: str = "r1",
    number: int = 0,
    text: str | None = "good",
    calls: int = 1,
    probability: float | None = 1.0,
) -> AnsweredCall:
    """One ended call; ``text`` None is one that failed, and without a ``probability`` no labels of
    its request are bought."""
    return AnsweredCall(
        request=replace(REQUEST, request_id=request_id, label_probability=probability),
        call_id=f"{request_id}.{number}",
        candidate=f"secret-model-{number}",
        is_served=number == 0,
        calls=calls,
        ended_at=NOW,
        answer=None if text is None else Answer(text, finish=Finish.STOP),
    )


def shown_answers(messages: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The answers in a judge's prompt by their names, as a judge would read them."""
    return judge.shown_answers({"messages": messages})


def says(grades: Mapping[str, bool | float]) -> str:
    """A reply in the form that was asked for."""
    return json.dumps(
        {name: {"reason": f"because {name}", "satisfied": value} for name, value in grades.items()}
    )


def honest(messages: Sequence[Mapping[str, str]]) -> Reply:
    """Satisfied with what says `good`; a cent each time."""
    found = {name: "good" in text for name, text in shown_answers(messages).items()}
    return Reply(says(found), cost=0.01, prompt_tokens=100, completion_tokens=20)


@dataclass
class ScriptedJudge:
    """``script`` answers or raises; ``prompts`` holds what it was shown, ``times`` when."""

    script: Callable[[Sequence[Mapping[str, str]]], Reply] = honest
    seconds: float = 0.0
    prompts: list[Sequence[Message]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def __call__(
        self, messages: Sequence[Message], schema: Mapping[str, Any], timeout_seconds: float
    ) -> Reply:
        self.prompts.append(messages)
        self.times.append(asyncio.get_running_loop().time())
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.seconds)
            return self.script(messages)
        finally:
            self.at_once -= 1


LIMITS = ("concurrent", "most_waiting", "patience_seconds")
"""What a test gives to the judge itself, for no setting says it."""


@dataclass
class Bench:
    """A judge with all that comes out of it. Make it inside a running loop."""

    scripted: ScriptedJudge = field(default_factory=ScriptedJudge)
    settings: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    gradings: list[GradingRecord] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    cost: JudgeCost = field(default_factory=JudgeCost)

    def __post_init__(self) -> None:
        given = dict(self.settings)
        limits = {name: given.pop(name) for name in LIMITS if name in given}
        seconds = given.pop("timeout_seconds", GRADING_SECONDS)
        most = given.pop("gradings", GRADINGS_PER_DAY)
        settings = BuyingSettings.model_validate(given)
        sinks = JudgeSinks(self.findings.append, self.gradings.append, self.counters)
        budget = JudgeBudget(settings.budget_per_day, gradings=most)
        asking = Asking("critic", self.scripted, budget, self.cost, sinks, seconds)
        grader = Grader(asking, settings.rubric, sinks.report, seed=0)
        self.judge = Judge(*("zoo", "critic", grader, budget, self.cost, self.counters), **limits)
        self.judge.start()

    def learn(self, spent: Spent | None = None, agreement: Agreement | None = None) -> "Bench":
        today = datetime.now(UTC).date()
        self.judge.learn(spent or Spent(today), agreement or Agreement(), time.monotonic())
        return self

    @property
    def counts(self) -> dict[str, int]:
        return self.counters.as_dict()

    @property
    def verdicts(self) -> dict[str, float]:
        return {finding.call_id: finding.value for finding in self.findings}


async def idle() -> None:
    """Until all that can be done at once is done, in virtual time."""
    await asyncio.sleep(0.001)
