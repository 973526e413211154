"""Zoos, records and entries with sensible defaults: a test names only what it is about."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any, get_args

import numpy as np

from litellm_messplus.core.adaptive_policy import AdaptivePolicy
from litellm_messplus.core.answer import ANSWER_VERSION, Answer, read_answer
from litellm_messplus.core.decision import Estimate, Reason, Situation
from litellm_messplus.core.encoder import Conversation, FeatureRows, Features
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.entries import (
    CandidateChanged,
    Decided,
    Example,
    Labelled,
    Settled,
)
from litellm_messplus.core.paper_policy import PaperPolicy
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.surface import VERSION, read_surface
from litellm_messplus.core.verdict import Given
from litellm_messplus.core.zoo_state import ZooState
from litellm_messplus.costs.price import Price
from litellm_messplus.records import (
    Asker,
    CallRecord,
    LabelRecord,
    Record,
    RequestRecord,
    exploration_call_id,
    replaced_call_id,
    served_call_id,
)
from litellm_messplus.rows import flat, rebuilt
from litellm_messplus.runtime.vocabulary import (
    CallRole,
    CallStatus,
    Change,
    CostSource,
    Failure,
    LabelKind,
)
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.settings.zoo import Zoo

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
SMALL, MEDIUM, LARGE = "small", "medium", "large"
PRICES = {
    SMALL: Price(0.0, 0.01),
    MEDIUM: Price(0.0, 0.03),
    LARGE: Price(0.0, 0.05),
}
POLICIES = get_args(ZooSettings.model_fields["policy"].annotation)
"""What holds for every policy is tested with each of them."""


ELIGIBLE = {0: (LARGE,), 3: (MEDIUM, LARGE)}
"""Of some requests of the made-up traffic: one is forced, one has less of a choice."""


class PairEncoder:
    """An encoder of dimension 2: the text `1 -0.5` is the vector (1, -0.5)."""

    name = "pair-1"
    dimension = 2
    is_fast = True

    def read(self, conversation: Conversation) -> str:
        return conversation.text

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        return np.array([[float(number) for number in text.split()] for text in texts], np.float32)


def pair(first: float, second: float) -> Features:
    return np.array([first, second], dtype=np.float32)


def point(first: float, second: float) -> Prompt:
    """A prompt with these features, of which nothing else is known."""
    return Prompt(pair(first, second))


def build_zoo(prices: dict[str, Price] | None = None, name: str = "zoo", **settings: Any) -> Zoo:
    return Zoo(name, ZooSettings.model_validate({"alpha": 0.6, **settings}), prices or PRICES)


def build_engine(zoo: Zoo | None = None, seed: int = 0) -> Engine:
    return Engine(zoo or build_zoo(), PairEncoder(), seed)


def build_state(zoo: Zoo | None = None) -> ZooState:
    return build_engine(zoo).empty_state()


def paper_of(state: ZooState) -> PaperPolicy:
    assert isinstance(state.policy, PaperPolicy)
    return state.policy


def adaptive_of(state: ZooState) -> AdaptivePolicy:
    assert isinstance(state.policy, AdaptivePolicy)
    return state.policy


def situation(
    *estimates: tuple[str, float, float],
    t: int = 100,
    alpha: float = 0.6,
    queue: float = 0.0,
    in_flight: float = 0.0,
    largest: str = LARGE,
    exploration_draw: float = 0.999,
    choice_draw: float = 0.0,
) -> Situation:
    """Of (candidate, cost, satisfaction) each, for an average request; by default one that does not
    explore."""
    return Situation(
        t=t,
        alpha=alpha,
        queue=queue,
        in_flight=in_flight,
        estimates=tuple(Estimate(name, cost, cost, share) for name, cost, share in estimates),
        largest=largest,
        exploration_draw=exploration_draw,
        choice_draw=choice_draw,
    )


def request(request_id: str = "r1", **changed: Any) -> RequestRecord:
    record = RequestRecord(
        request_id=request_id,
        created_at=NOW,
        zoo="zoo",
        service_level="default",
        expected_t=1,
        alpha=0.6,
        policy="paper",
        asker=Asker(f"litellm-{request_id}", "key", None, "acompletion", False),
        encoder=PairEncoder.name,
        features=pair(1.0, 0.0),
        prompt_characters=40,
        estimated_cost={SMALL: 1.0, LARGE: 5.0},
        estimated_satisfaction={SMALL: 0.5, LARGE: 0.5},
        queue=0.0,
        chosen=LARGE,
        largest=LARGE,
        is_exploration=True,
        exploration_probability=1.0,
        reason=Reason.FIRST_REQUEST,
        decision_seconds=0.0001,
    )
    return with_columns(record, **changed)


def with_columns(record: RequestRecord, **changed: Any) -> RequestRecord:
    """The record with other values in some columns, in whichever facet they are."""
    return rebuilt(RequestRecord, flat(record) | changed)


def served_call(request_id: str = "r1", **changed: Any) -> CallRecord:
    record = CallRecord(
        call_id=served_call_id(request_id),
        request_id=request_id,
        ended_at=NOW,
        role=CallRole.SERVED,
        status=CallStatus.SUCCESS,
        candidate=LARGE,
        deployment_id="deployment-1",
        model="openai/large",
        response_id=f"chatcmpl-{request_id}",
        prompt_tokens=10,
        completion_tokens=100,
        cost=5.0,
        cost_source=CostSource.MEASURED,
        seconds=0.2,
    )
    failure = Failure.UPSTREAM if changed.get("status") is CallStatus.FAILURE else None
    return replace(record, **{"failure": failure, **changed})


def exploration_call(request_id: str = "r1", number: int = 1, **changed: Any) -> CallRecord:
    return served_call(
        request_id,
        **{
            "call_id": exploration_call_id(request_id, number),
            "role": CallRole.EXPLORATION,
            "candidate": SMALL,
            "model": "openai/small",
            "response_id": f"chatcmpl-{request_id}-{number}",
            "cost": 1.0,
            **changed,
        },
    )


def replaced_call(request_id: str = "r1", **changed: Any) -> CallRecord:
    """The call that answered first, which the user did not see."""
    first = {"call_id": replaced_call_id(request_id), "role": CallRole.REPLACED}
    cheap = {"candidate": SMALL, "model": "openai/small", "cost": 1.0}
    return served_call(request_id, **{**first, **cheap, "response_id": None, **changed})


def looks(text: str) -> dict[str, Any]:
    """The columns of a call that was answered with this text."""
    return {"answer_surface": read_answer(Answer(text)), "answer_version": ANSWER_VERSION}


def label(
    request_id: str = "r1", value: float = 1.0, number: int = 0, **changed: Any
) -> LabelRecord:
    """On the served call, or on the ``number``-th exploration; ids repeat unless changed."""
    record = LabelRecord(
        label_id=f"label-{request_id}-{number}",
        call_id=f"{request_id}.{number}",
        request_id=request_id,
        created_at=NOW,
        kind=LabelKind.FEEDBACK,
        source="feedback",
        value=value,
    )
    return replace(record, **changed)


def example(candidate: str = LARGE, **changed: Any) -> Example:
    built = Example(
        request_id="r1",
        encoder=PairEncoder.name,
        features=pair(1.0, 0.0),
        candidate=candidate,
        is_exploration=True,
    )
    return replace(built, **changed)


def decided(
    level: str = "default",
    request_id: str = "r1",
    position: int = 1,
    expected_shortfall: float = 0.0,
    calls: int = 1,
    at: float = 0.0,
) -> Decided:
    return Decided(position, "zoo", level, request_id, expected_shortfall, calls, at)


def settled(
    candidate: str | None = LARGE, satisfaction: float | None = None, **changed: Any
) -> Settled:
    """With a user's label that came before it, where there is a ``satisfaction``."""
    entry = Settled(
        position=1,
        zoo="zoo",
        call_id=served_call_id("r1"),
        candidate=candidate,
        prompt_characters=40,
        prompt_tokens=10,
        completion_tokens=100,
        example=None,
        given=() if satisfaction is None else (given(satisfaction),),
    )
    return replace(entry, **changed)


def changed(
    candidate: str, change: Change = Change.APPEARED, price: float = 0.002, **other: Any
) -> CandidateChanged:
    """What became of a candidate; ``price`` is of a completion token."""
    found = None if change is Change.GONE else Price(0.0, price)
    return replace(CandidateChanged(1, "zoo", candidate, change, found, 0.0), **other)


def given(
    value: float, weight: float = 1.0, kind: LabelKind = LabelKind.FEEDBACK, source: str = ""
) -> Given:
    """A label; of the only source of its kind, unless told otherwise."""
    return Given(kind, source or kind.value, value, weight)


def labelled(
    satisfaction: float, previous: float | None = None, weight: float = 1.0, **changed: Any
) -> Labelled:
    """A user's label, in the place of the ``previous`` one, where there is one."""
    entry = Labelled(
        position=1,
        zoo="zoo",
        service_level="default",
        request_id="r1",
        call_id=served_call_id("r1"),
        alpha=0.6,
        is_served=True,
        given=given(satisfaction, weight),
        earlier=() if previous is None else (given(previous, weight),),
        example=None,
    )
    return replace(entry, **changed)


def traffic(
    count: int, seed: int = 0, prefix: str = "r", zoo: str = "zoo", *, replaces: bool = False
) -> list[Record]:
    """A log of ``count`` requests with all that happens to them, in a likely order.

    Explorations and plain requests, failures, cache hits, fallbacks outside the zoo; labels before
    and after the call ended, second verdicts, none at all. If it ``replaces``, also answers that
    were replaced, and explorations that ended first.
    """
    random, of_answers = Random(f"{seed}/{prefix}"), Random(f"answers/{seed}/{prefix}")
    numbers: Counter[str] = Counter()
    records: list[Record] = []
    for number in range(1, count + 1):
        request_id = f"{prefix}{number}"
        explores = random.random() < 0.4
        features = pair(random.uniform(-1, 1), random.uniform(-1, 1))
        level = random.choice(["default", "gold"])
        numbers[level] += 1
        words = " ".join(str(random.randrange(1000)) for _ in range(random.randrange(12)))
        asked = request(
            request_id,
            zoo=zoo,
            expected_t=numbers[level],
            features=features,
            surface=read_surface(Conversation.of_text(words)),
            surface_version=random.choice([VERSION, VERSION, "surface-0"]),
            is_exploration=explores,
            service_level=level,
            expected_satisfaction=random.choice([None, 0.2, 0.7, 0.9]),
            eligible=ELIGIBLE.get(number % 7),
            gated_by=("images",) if number % 7 in ELIGIBLE else None,
        )
        call = served_call(
            request_id,
            candidate=random.choice([SMALL, MEDIUM, LARGE, None]),
            status=CallStatus.FAILURE if random.random() < 0.1 else CallStatus.SUCCESS,
            completion_tokens=random.choice([None, random.randrange(500)]),
            is_cache_hit=random.random() < 0.1,
            **_looks(of_answers),
        )
        verdicts = [
            label(
                request_id,
                random.choice([0.0, 0.3, 1.0]),
                label_id=f"{request_id}-{again}",
                weight=random.choice([1.0, 0.5]),
            )
            for again in range(random.choice([0, 1, 1, 2]))
        ]
        records.append(asked)
        if replaces and of_answers.random() < 0.3:
            records.append(replaced_call(request_id, **_looks(of_answers)))
        tail: list[Record] = [call, *verdicts]
        if verdicts and random.random() < 0.3:  # the client was faster than the log event
            tail[0], tail[1] = tail[1], tail[0]
        records += tail
        if explores:
            unseen = exploration_call(request_id, 1, **_looks(of_answers))
            is_first = replaces and of_answers.random() < 0.5
            records.insert(len(records) - is_first * len(tail), unseen)
            records.append(label(request_id, random.choice([0.0, 1.0]), 1))
    return records


def _looks(random: Random) -> dict[str, Any]:
    """Of this version, of an earlier one, or not read."""
    read = looks("x" * random.randrange(100))
    return random.choice([read, read, {**read, "answer_version": "answer-0"}, {}])
