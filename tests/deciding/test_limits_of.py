"""Where a level stands against its limits as a request is decided: log, time, and what is open."""

from dataclasses import replace
from typing import Any

import pytest

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.expectations import use_of
from litellm_messplus.deciding.question import Question
from litellm_messplus.routing.limits import AHEAD_SECONDS, DAY, LATE_SHARE, Limits
from litellm_messplus.runtime.vocabulary import BEFORE_SUFFIX
from litellm_messplus.settings.promise import ServiceLevel
from tests.support.builders import (
    LARGE,
    SMALL,
    build_engine,
    build_zoo,
    decided,
    example,
    labelled,
    point,
    settled,
)

NOON = 100 * DAY + DAY / 2
BOTH: dict[str, Any] = {"p95_seconds": 2.0, "budget_per_day": 50.0}


def engine(**limits: Any) -> Engine:
    return build_engine(build_zoo(**limits))


def question(built: Engine, request_id: str = "r1", at: float = NOON) -> Question:
    level, present = built.zoo.levels["default"], built.zoo.present
    return Question(request_id, level, point(1.0, 0.0), 40, present, at=at)


def standing(built: Engine, at: float = NOON) -> Limits:
    found = built.situation(question(built, "asked", at)).limits
    assert found is not None
    return found


def test_a_level_without_limits_has_none_and_logs_none() -> None:
    built = engine()
    choice = built.decide(question(built))
    assert choice.situation.limits is None
    assert use_of(choice.situation, choice.decision) is None


def test_what_is_served_as_before_knows_no_limits() -> None:
    built = engine(**BOTH)
    level: ServiceLevel = built.zoo.levels["default"]
    as_before = level.model_copy(update={"name": f"default{BEFORE_SUFFIX}"})
    assert built.situation(question(built)).limits is not None
    assert built.situation(replace(question(built), level=as_before)).limits is None


def test_what_may_be_spent_is_by_the_time_of_the_request_and_a_limit_not_set_says_nothing() -> None:
    for at, share in ((NOON, 0.5), (101 * DAY, 0.0), (0.0, 0.0)):
        allowed = standing(engine(**BOTH), at).allowed
        assert allowed == pytest.approx(50.0 * (share + AHEAD_SECONDS / DAY))
    only_budget = standing(engine(budget_per_day=50.0))
    assert (only_budget.late_after, only_budget.charge) == (None, 0.0)
    only_latency = standing(engine(p95_seconds=2.0))
    assert (only_latency.budget, only_latency.strain) == (None, 1.0)


def test_a_request_counts_from_its_decision_on_and_no_longer_once_it_is_forgotten() -> None:
    built = engine(**BOTH)
    choice = built.decide(question(built))
    use = use_of(choice.situation, choice.decision)
    assert use is not None
    cost = {each.candidate: each.cost for each in choice.situation.estimates}
    called = {choice.decision.chosen, *choice.decision.explored}
    assert use.late == pytest.approx(LATE_SHARE)
    assert use.cost == sum(cost[name] for name in called)
    assert standing(built).spent == use.cost
    built.apply(decided(at=NOON, expected_use=use))  # in the log now, and not twice
    assert standing(built).spent == pytest.approx(use.cost)
    dropped = build_engine(built.zoo)
    dropped.decide(question(dropped))
    dropped.forget("r1")
    assert standing(dropped).spent == 0.0


def test_a_slow_candidate_is_found_by_its_calls() -> None:
    built = engine(**BOTH)
    for _ in range(100):
        built.apply(settled(SMALL, seconds=3.0))
        built.apply(settled(LARGE, seconds=1.0))
    late = standing(built).late
    assert late[SMALL].now > 0.9
    assert late[LARGE].now < 0.01


def test_the_plan_over_recent_prompts_is_charged_by_the_same_step() -> None:
    """One outlook is kept for each step of the price, not one for each request."""
    built = engine(p95_seconds=2.0)
    for number in range(80):
        seen = example(SMALL, request_id=f"r{number}")
        built.apply(settled(SMALL, seconds=3.0, example=seen))
        built.apply(labelled(1.0, request_id=f"r{number}", call_id=f"r{number}.0", example=seen))
    usual = built.zoo.present
    free = Limits(late_after=2.0)
    owing = free._replace(late_owed=3.0, late_price=1.0)
    plain = built.expectations.outlook(usual, {})
    assert plain is not None
    assert built.expectations.outlook(usual, {}, free) is plain
    charged = built.expectations.outlook(usual, {}, owing)
    assert charged is not None
    assert charged is not plain
    more = owing._replace(late_owed=3.2)
    assert built.expectations.outlook(usual, {}, more) is charged
    alone = usual.index(SMALL)
    dearer, before = (
        each.frontier([alone], is_hopeful=False).costs[0] for each in (charged, plain)
    )
    assert dearer == pytest.approx(before + 1.0, rel=0.1)
