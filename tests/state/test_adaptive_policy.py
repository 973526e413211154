"""Policy `adaptive` through the engine: what decisions and labels do to accounts and rates."""

from typing import Any

import pytest

from litellm_messplus.deciding.decider import Engine, Question
from litellm_messplus.routing.decision import label_weight
from litellm_messplus.routing.trying import LEAST_LABELLED
from litellm_messplus.state.account import PENDING
from litellm_messplus.state.adaptive_policy import UnseenCalls
from litellm_messplus.state.entries import Entry, Labelled
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

LEVELS = {"gold": {"alpha": 0.9}}


@pytest.fixture
def engine() -> Engine:
    return build_engine(build_zoo(service_levels=LEVELS))


def folded(*entries: Entry, **settings: Any) -> Engine:
    engine = build_engine(build_zoo(service_levels=LEVELS, **settings))
    for entry in entries:
        engine.apply(entry)
    return engine


def rates(engine: Engine) -> dict[str, float]:
    predictor = adaptive_of(engine.state).predictor
    return dict(zip(predictor.candidates, predictor.rate, strict=True))


def test_asking_and_deciding_change_nothing(engine: Engine) -> None:
    """The state is the fold of the log: another worker, which decided nothing, has the same."""
    before = bits(engine)
    level = engine.zoo.levels["gold"]
    engine.decide(Question("r1", level, point(1, 0), 40, engine.zoo.candidates))
    assert engine.state.policy.queue("default") == 0.0
    assert bits(engine) == before


def test_a_decided_request_counts_with_what_was_expected_in_its_level_alone() -> None:
    engine = folded(decided("gold", expected_shortfall=0.25))
    assert engine.state.policy.queue("gold") == 0.25
    assert engine.state.policy.queue("default") == 0.0


def test_the_label_takes_the_place_of_the_expectation() -> None:
    engine = folded(decided(expected_shortfall=0.25), labelled(1.0, alpha=0.75))
    assert engine.state.policy.queue("default") == -0.25


def test_a_second_verdict_replaces_the_first_long_after_the_request_expired() -> None:
    others = (decided(request_id=f"other {number}") for number in range(PENDING))
    entries: list[Entry] = [decided(expected_shortfall=0.25), *others]
    entries.append(labelled(0.0, alpha=0.75))
    assert folded(*entries).state.policy.queue("default") == 0.75
    entries.append(labelled(1.0, previous=0.0, alpha=0.75))
    assert folded(*entries).state.policy.queue("default") == pytest.approx(-0.25)


def test_requests_in_flight_count_until_they_are_in_the_log(engine: Engine) -> None:
    level = engine.zoo.levels["default"]
    expected = 0.0
    for number in range(1, 4):
        choice = engine.decide(
            Question(f"r{number}", level, point(1, 0), 40, engine.zoo.candidates)
        )
        told, decision = choice.situation, choice.decision
        assert (told.t, told.queue) == (number, 0.0)
        assert told.in_flight == pytest.approx(expected)
        expected += told.alpha - decision.expected_satisfaction
    shortfall = told.alpha - decision.expected_satisfaction
    engine.apply(decided(request_id="r3", expected_shortfall=shortfall))
    engine.forget("r2")  # its record was dropped
    told = engine.situation(Question("r4", level, point(1, 0), 40, engine.zoo.candidates))
    assert told.t == 3
    assert told.queue == pytest.approx(shortfall)
    gold = engine.situation(
        Question("g1", engine.zoo.levels["gold"], point(1, 0), 40, engine.zoo.candidates)
    )
    assert (gold.t, gold.queue, gold.in_flight) == (1, 0.0, 0.0)


@pytest.mark.parametrize("is_served", [True, False])
@pytest.mark.parametrize("is_exploration", [True, False])
def test_every_label_teaches_whoever_asked_for_it(is_served: bool, is_exploration: bool) -> None:
    seen = example(MEDIUM, is_exploration=is_exploration)
    before = rates(folded())
    after = rates(folded(labelled(0.0, is_served=is_served, example=seen)))
    assert after[MEDIUM] < before[MEDIUM]
    assert after[MEDIUM] < after[SMALL] == after[LARGE]


def unseen_share(*entries: Entry) -> float:
    return adaptive_of(folded(*entries).state).unseen.labelled_share


EXPLORED = labelled(1.0, is_served=False, example=example(SMALL))
"""The first verdict on a call that no user saw."""


def exploring(count: int, calls: int = 2) -> list[Entry]:
    return [decided(request_id=f"r{number}", calls=calls) for number in range(count)]


def test_calls_that_no_user_sees_are_trusted_as_long_as_they_get_labels() -> None:
    again = labelled(1.0, previous=0.0, is_served=False, example=example(SMALL))
    requests = exploring(100)

    assert unseen_share() == 1.0
    assert unseen_share(*requests) == 0.0
    assert unseen_share(*requests, *[again] * 100) == unseen_share(*requests)
    assert unseen_share(*requests, *[labelled(1.0)] * 100) == unseen_share(*requests)
    assert unseen_share(*requests, *[EXPLORED] * 20) == pytest.approx(0.21, abs=0.02)
    assert unseen_share(*requests, *[EXPLORED] * 200) == 1.0


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


@pytest.mark.parametrize(("requests", "most"), [(47, 6), (150, 6), (1000, 14), (20_000, 130)])
def test_a_zoo_that_nobody_labels_makes_a_few_unseen_calls(requests: int, most: int) -> None:
    assert 5 <= unseen_calls(requests) <= most


@pytest.mark.parametrize(("label_after", "least"), [(0, 200), (3, 200), (10, 194), (30, 170)])
def test_a_zoo_whose_labels_come_some_requests_late_is_hardly_slowed(
    label_after: int, least: int
) -> None:
    assert unseen_calls(200, label_after) >= least


def test_after_a_while_unseen_calls_are_tried_again() -> None:
    plain = [decided(request_id=f"later {number}") for number in range(6000)]
    assert unseen_share(*exploring(30)) < LEAST_LABELLED
    assert unseen_share(*exploring(30), *plain) > LEAST_LABELLED


def test_what_one_level_learns_all_know_and_its_debt_is_its_own() -> None:
    engine = folded(
        labelled(0.0, service_level="gold", alpha=0.9, example=example(SMALL)),
    )
    assert engine.state.policy.queue("default") == 0.0
    assert engine.state.policy.queue("gold") == 0.9
    level = engine.zoo.levels["default"]
    told = engine.situation(Question("r1", level, point(1, 0), 40, (SMALL, LARGE)))
    small, large = told.estimates
    assert small.satisfaction < large.satisfaction


def test_predictions_come_in_the_order_asked_for() -> None:
    engine = folded(labelled(0.0, example=example(SMALL)))
    small, large = engine.state.policy.predict(point(1, 0), [SMALL, LARGE])
    assert engine.state.policy.predict(point(1, 0), [LARGE, SMALL]) == [large, small]
    assert small < large


def test_a_label_that_counts_half_moves_half() -> None:
    whole, half = folded(labelled(0.0)), folded(labelled(0.0, weight=0.5))
    assert half.state.policy.queue("default") == whole.state.policy.queue("default") / 2


def test_labels_weighed_by_a_response_bias_show_what_is_true() -> None:
    """Unsatisfied users answer three times as often: 3 of 4 answers are bad where half are."""

    def answer(satisfaction: float, bias: float) -> Labelled:
        weight = label_weight(satisfaction, bias)
        return labelled(satisfaction, weight=weight, alpha=0.5, example=example())

    answers = [float(number % 4 == 0) for number in range(400)]
    plain, corrected = (folded(*(answer(each, bias) for each in answers)) for bias in (1.0, 3.0))
    assert plain.state.policy.queue("default") == pytest.approx(400 * 0.25)
    assert corrected.state.policy.queue("default") == pytest.approx(0.0, abs=1e-6)
    assert rates(plain)[LARGE] == pytest.approx(0.25, abs=0.02)
    assert rates(corrected)[LARGE] == pytest.approx(0.5, abs=0.02)


def test_a_second_verdict_counts_with_its_own_weight() -> None:
    once = folded(labelled(1.0, weight=1.5))
    second = labelled(1.0, weight=1.5, earlier=(given(0.0, 0.5),))
    twice = folded(labelled(0.0, weight=0.5), second)
    assert twice.state.policy.queue("default") == pytest.approx(once.state.policy.queue("default"))


def test_a_margin_aims_higher_while_few_have_answered() -> None:
    level = build_zoo(margin=1.0).levels["default"]
    aims = []
    for answers in (0, 50, 5000):
        engine = folded(*[labelled(0.6) for _ in range(answers)], margin=1.0)
        question = Question("r1", level, point(1, 0), 40, engine.zoo.candidates)
        aims.append(engine.situation(question).alpha)
    assert aims == sorted(aims, reverse=True)
    assert aims[0] > aims[-1] > level.alpha
    assert aims[-1] == pytest.approx(level.alpha, abs=0.01)
