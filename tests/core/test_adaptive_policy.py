"""Policy `adaptive` through the engine: what decisions and labels do to accounts and rates."""

from typing import Any

import pytest

from litellm_messplus.core.account import PENDING
from litellm_messplus.core.adaptive_policy import UnseenCalls
from litellm_messplus.core.decision import label_weight
from litellm_messplus.core.engine import Engine, Question
from litellm_messplus.core.entries import Entry, Labelled
from litellm_messplus.core.trying import LEAST_LABELLED
from tests.support.builders import (
    LARGE,
    MEDIUM,
    SMALL,
    adaptive_of,
    build_engine,
    build_zoo,
    decided,
    example,
    given,
    labelled,
    point,
)
from tests.support.folding import bits


def folded(*entries: Entry, **settings: Any) -> Engine:
    engine = build_engine(build_zoo(service_levels={"gold": {"alpha": 0.9}}, **settings))
    for entry in entries:
        engine.apply(entry)
    return engine


def question(engine: Engine, request_id: str, level: str = "default") -> Question:
    return Question(request_id, engine.zoo.levels[level], point(1, 0), 40, engine.zoo.candidates)


def rates(engine: Engine) -> dict[str, float]:
    predictor = adaptive_of(engine.state).predictor
    return dict(zip(predictor.candidates, predictor.rate, strict=True))


EXPIRED = [decided(request_id=f"other {number}") for number in range(PENDING)]


@pytest.mark.parametrize(
    ("entries", "level", "owed"),
    [
        ([decided("gold", expected_shortfall=0.25)], "gold", 0.25),
        ([decided("gold", expected_shortfall=0.25)], "default", 0.0),
        ([decided(expected_shortfall=0.25), labelled(1.0, alpha=0.75)], "default", -0.25),
        ([decided(expected_shortfall=0.25), *EXPIRED, labelled(0.0, alpha=0.75)], "default", 0.75),
        (
            [
                *(decided(expected_shortfall=0.25), *EXPIRED, labelled(0.0, alpha=0.75)),
                labelled(1.0, previous=0.0, alpha=0.75),
            ],
            *("default", -0.25),
        ),
        ([labelled(0.0, weight=0.5)], "default", 0.3),
        (
            [
                *(labelled(0.0, weight=0.5), labelled(1.0, weight=1.5, earlier=(given(0.0, 0.5),))),
            ],
            *("default", 1.5 * -0.4),
        ),
        ([labelled(0.0, service_level="gold", alpha=0.9, example=example(SMALL))], "gold", 0.9),
        ([labelled(0.0, service_level="gold", alpha=0.9, example=example(SMALL))], "default", 0.0),
    ],
    ids=[
        *("what is expected counts", "in its level alone", "until its label comes"),
        *("a label long after it expired", "and a second one then", "a label that counts half"),
        *("a second with its own weight", "a label counts in its level", "alone"),
    ],
)
def test_what_is_owed(entries: list[Entry], level: str, owed: float) -> None:
    assert folded(*entries).state.policy.queue(level) == pytest.approx(owed)


def test_requests_in_flight_count_until_they_are_in_the_log() -> None:
    """The state is the fold of the log: another worker, which decided nothing, has the same."""
    engine = folded()
    before, expected = bits(engine), 0.0
    for number in range(1, 4):
        choice = engine.decide(question(engine, f"r{number}"))
        now = choice.situation
        assert (now.t, now.queue) == (number, 0.0)
        assert now.in_flight == pytest.approx(expected)
        shortfall = now.alpha - choice.decision.expected_satisfaction
        expected += shortfall
    assert bits(engine) == before
    engine.apply(decided(request_id="r3", expected_shortfall=shortfall))
    engine.forget("r2")  # its record was dropped
    now = engine.situation(question(engine, "r4"))
    assert now.t == 3
    assert now.queue == pytest.approx(shortfall)
    gold = engine.situation(question(engine, "g1", "gold"))
    assert (gold.t, gold.queue, gold.in_flight) == (1, 0.0, 0.0)


def test_draws_are_by_the_id_of_the_request() -> None:
    engine, other = folded(), folded()
    engine.apply(decided(request_id="r1", position=7))
    choice = engine.decide(question(engine, "r2"))
    drawn = other.situation(question(other, "r2"))
    assert drawn.t != choice.situation.t
    assert drawn.exploration_draw == choice.situation.exploration_draw
    assert drawn.choice_draw == choice.situation.choice_draw
    assert drawn.choice_draw != drawn.exploration_draw


@pytest.mark.parametrize("level", ["default", "gold"])
@pytest.mark.parametrize("is_served", [True, False])
@pytest.mark.parametrize("is_exploration", [True, False])
def test_a_label_teaches_all_levels(level: str, is_served: bool, is_exploration: bool) -> None:
    seen = example(MEDIUM, is_exploration=is_exploration)
    engine = folded(labelled(0.0, service_level=level, is_served=is_served, example=seen))
    before, after = rates(folded()), rates(engine)
    assert after[MEDIUM] < before[MEDIUM]
    assert after[MEDIUM] < after[SMALL] == after[LARGE]
    small, medium = engine.state.policy.predict(point(1, 0), [SMALL, MEDIUM])
    assert engine.state.policy.predict(point(1, 0), [MEDIUM, SMALL]) == [medium, small]
    assert medium < small


def unseen_share(*entries: Entry) -> float:
    return adaptive_of(folded(*entries).state).unseen.labelled_share


def test_calls_that_no_user_sees_are_trusted_as_long_as_they_get_labels() -> None:
    """And tried again after a while."""
    first = labelled(1.0, is_served=False, example=example(SMALL))
    again = labelled(1.0, previous=0.0, is_served=False, example=example(SMALL))
    requests = [decided(request_id=f"r{number}", calls=2) for number in range(100)]
    plain = [decided(request_id=f"later {number}") for number in range(6000)]

    assert unseen_share() == 1.0
    assert unseen_share(*requests) == 0.0
    assert unseen_share(*requests, *[again] * 100, *[labelled(1.0)] * 100) == 0.0
    assert unseen_share(*requests, *[first] * 20) == pytest.approx(0.21, abs=0.02)
    assert unseen_share(*requests, *[first] * 200) == 1.0
    assert unseen_share(*requests[:30]) < LEAST_LABELLED < unseen_share(*requests[:30], *plain)


def unseen_calls(requests: int, label_after: int | None = None) -> int:
    """How many are made where every request would take one, and the labels come so many later."""
    made, due, state = 0, list[int](), UnseenCalls()
    for number in range(requests):
        if label_after is not None and due and due[0] + label_after <= number:
            due.pop(0)
            state.answered()
        is_made = state.labelled_share >= LEAST_LABELLED
        made += is_made
        due += [number] * is_made
        state.decided(int(is_made))
    return made


@pytest.mark.parametrize(
    ("requests", "label_after", "least", "most"),
    [
        *((47, None, 5, 6), (150, None, 5, 6), (1000, None, 5, 14), (20_000, None, 5, 130)),
        *((200, 0, 200, 200), (200, 3, 200, 200), (200, 10, 194, 200), (200, 30, 170, 200)),
    ],
)
def test_few_unseen_calls_are_made_without_labels_and_nearly_all_where_labels_come_late(
    requests: int, label_after: int | None, least: int, most: int
) -> None:
    assert least <= unseen_calls(requests, label_after) <= most


def test_labels_weighed_by_a_response_bias_show_what_is_true() -> None:
    """Unsatisfied users answer three times as often: 3 of 4 answers are bad where half are."""

    def answer(satisfaction: float, bias: float) -> Labelled:
        weight = label_weight(satisfaction, bias)
        return labelled(satisfaction, weight=weight, alpha=0.5, example=example())

    answers = [float(number % 4 == 0) for number in range(400)]
    for bias, owed, rate in ((1.0, 400 * 0.25, 0.25), (3.0, 0.0, 0.5)):
        engine = folded(*(answer(each, bias) for each in answers))
        assert engine.state.policy.queue("default") == pytest.approx(owed, abs=1e-6)
        assert rates(engine)[LARGE] == pytest.approx(rate, abs=0.02)
