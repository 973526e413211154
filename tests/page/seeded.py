"""A month of traffic as the page would show it, with words in it that try to be markup."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from math import exp, pi, sin
from random import Random
from typing import cast

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core.decision import Reason
from litellm_messplus.core.held import Gated
from litellm_messplus.core.hold import Hold, LinePlace
from litellm_messplus.records import (
    CallRecord,
    GradingRecord,
    LabelRecord,
    Names,
    Record,
    RequestRecord,
    exploration_call_id,
)
from litellm_messplus.runtime.vocabulary import CallRole, GradingStatus, LabelKind
from litellm_messplus.status.figures import LiveLevel
from litellm_messplus.store import log
from tests.support.builders import label, request, served_call

ZOO = "llama"
SMALL, MEDIUM, LARGE = "meta/llama-3.2-1b", "meta/llama-3.1-8b", "meta/llama-3.1-70b"
CANDIDATES = {SMALL: (0.0004, 0.62), MEDIUM: (0.0021, 0.82), LARGE: (0.0135, 0.93)}
"""What a call costs, and how likely it satisfies."""
ALPHA = {"default": 0.8, "gold": 0.9}
LIVE = {
    (ZOO, "default"): LiveLevel(-3.2, 0.004, True, ALPHA["default"], "usd", 0.3),
    (ZOO, "gold"): LiveLevel(4.6, 0.021, True, ALPHA["gold"], "usd", 0.3),
}
DAYS = 30

HOSTILE = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror=window.hacked=1>",
    "<svg onload=window.hacked=1>",
    '"><script>window.hacked = 1</script>',
    "'><img src=x onerror=window.hacked=1>",
    "</td></tr></table><script>window.hacked = 1</script>",
    "</pre></dialog><iframe srcdoc='<script>parent.hacked=1</script>'></iframe>",
    "<iframe src='javascript:parent.hacked=1'></iframe>",
    "<a href='javascript:window.hacked=1'>click me</a>",
    "javascript:window.hacked=1",
    "<style>* { display: none }</style>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<base href='https://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<form action=https://evil.example><button>Sign in</button></form>",
    "<template><script>window.hacked = 1</script></template>",
    "{{constructor.constructor('window.hacked=1')()}} ${window.hacked=1}",
    "&lt;script&gt;window.hacked=1&lt;/script&gt;",
    "\u202egnp.exe <b onmouseover=window.hacked=1>bold</b>",
    "__proto__ <object data='data:text/html,<script>parent.hacked=1</script>'></object>",
)


async def fill(database: AsyncEngine, count: int, until: datetime) -> None:
    """Write that many requests, spread over the days before ``until``."""
    records = list(traffic(count, until))
    for start in range(0, len(records), 500):
        await log.append(database, records[start : start + 500])


def traffic(count: int, until: datetime) -> Iterator[Record]:
    """The requests in the order of their decisions, each with all that happened to it. The newest
    are by hostile clients."""
    random = Random(7)
    queue = {"default": 0.0, "gold": 0.0}
    for number in range(count):
        left = count - number
        hostile = HOSTILE[left - 1] if left <= len(HOSTILE) else None
        at = until - timedelta(days=DAYS) * (left / count) ** 1.3
        level = "gold" if number % 6 == 5 and hostile is None else "default"
        yield from _request(number, number / count, at, level, queue, hostile, random)


def _request(
    number: int,
    progress: float,
    at: datetime,
    level: str,
    queue: dict[str, float],
    hostile: str | None,
    random: Random,
) -> Iterator[Record]:
    difficulty = random.gauss(0.0, 1.0)
    expected = {name: _chance(mean, difficulty) for name, (_, mean) in CANDIDATES.items()}
    price = 0.004 + 0.0015 * sin(6 * pi * progress) + (0.012 if level == "gold" else 0.0)
    price *= 1.0 + 0.7 * exp(-8 * progress)
    is_probe = random.random() < 0.04 + 0.2 * exp(-10 * progress)
    best = min(expected, key=lambda name: CANDIDATES[name][0] - price * expected[name] * 3.0)
    chosen = random.choice(list(CANDIDATES)) if is_probe else best
    request_id = _name(number)
    words = hostile or "Which of these two clauses ends the contract first, and why?"
    decided = request(
        request_id,
        created_at=at,
        zoo=ZOO,
        service_level=level,
        expected_t=number + 1,
        alpha=ALPHA[level],
        policy="adaptive",
        litellm_call_id=hostile or f"call-{number}",
        key_hash=f"{random.randrange(5):x}" * 12 + "e3b0c44298fc",
        encoder="hashed-ngrams-3",
        features=None,
        prompt_characters=400,
        estimated_cost={name: cost for name, (cost, _) in CANDIDATES.items()},
        estimated_satisfaction=expected,
        queue=queue[level],
        chosen=chosen,
        largest=LARGE,
        is_exploration=is_probe,
        exploration_probability=0.05,
        reason=Reason.PROBE if is_probe else Reason.AHEAD,
        decision_seconds=0.0006,
        encode_seconds=0.0002,
        price=price,
        prompt=words,
        propensity=0.95,
        exploration_calls=0,
    )
    decided = replace(
        decided,
        # Of another version, whose words are shown as they are logged.
        reason=cast(Reason, hostile) or decided.reason,
        names=Names(key_alias=hostile, tags=(hostile,)) if hostile else None,
        gated=Gated((chosen, LARGE), (hostile,)) if hostile else None,
        place=_place(number, level),
    )
    yield decided
    yield _call(decided, chosen, hostile, random)
    if number % 25 == 3:
        other = _call(decided, LARGE if chosen != LARGE else SMALL, None, random)
        call_id = exploration_call_id(request_id, 1)
        yield replace(other, call_id=call_id, role=CallRole.EXPLORATION)
    if random.random() < 0.6 or hostile is not None:
        satisfied = float(random.random() < expected[chosen])
        queue[level] = max(-20.0, queue[level] + ALPHA[level] - satisfied)
        yield _label(decided, LabelKind.FEEDBACK, satisfied, hostile)
    if number % 12 == 0:
        yield _label(decided, LabelKind.JUDGE, float(random.random() < expected[chosen]), None)
        yield _grading(decided, random)


def _name(number: int) -> str:
    return f"{number:08x}{'seeded' * 4}"[:32]


def _place(number: int, level: str) -> LinePlace | None:
    """A conversation is two requests of the default level: the second is held."""
    if level != "default":
        return None
    line, turn = _name(number - number % 2), number % 2 + 1
    return LinePlace(line, line, f"{number:032x}", turn, Hold.WARM if turn == 2 else None)


def _chance(mean: float, difficulty: float) -> float:
    return min(0.99, max(0.02, mean + 0.12 * difficulty * (1.0 - mean) * 3.0))


def _call(
    decided: RequestRecord, candidate: str, hostile: str | None, random: Random
) -> CallRecord:
    return served_call(
        decided.request_id,
        ended_at=decided.created_at + timedelta(seconds=2),
        candidate=candidate,
        deployment_id=f"{candidate}-0",
        model=f"hosted_vllm/{candidate}",
        prompt_tokens=random.randrange(60, 400),
        completion_tokens=random.randrange(20, 200),
        cost=CANDIDATES[candidate][0] * random.uniform(0.6, 1.5),
        seconds=random.uniform(0.4, 2.4),
        answer=hostile or "The second one, as its notice period is shorter.",
    )


def _label(
    decided: RequestRecord, kind: LabelKind, value: float, comment: str | None
) -> LabelRecord:
    return label(
        decided.request_id,
        value,
        label_id=f"{decided.request_id}-{kind}",
        created_at=decided.created_at + timedelta(seconds=30),
        kind=kind,
        source=kind.value,
        comment=comment,
    )


def _grading(decided: RequestRecord, random: Random) -> GradingRecord:
    return GradingRecord(
        grading_id=f"{decided.request_id}-grading",
        request_id=decided.request_id,
        created_at=decided.created_at + timedelta(seconds=20),
        judge="gpt-4o-mini",
        status=GradingStatus.GRADED,
        answers=1,
        cost=(cost := random.uniform(0.0003, 0.0006)),
        zoo_cost=cost,
    )
