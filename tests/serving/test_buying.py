"""The purse that labels are paid from, and who answers beside the served one."""

from dataclasses import replace
from datetime import UTC, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.buying import LabelPurse, compared_too, unseen_costs
from litellm_messplus.brain.judges import write_in_unit
from litellm_messplus.labels.agreement import PositionBias
from litellm_messplus.labels.buying import START_ALLOWANCE
from litellm_messplus.records import GradingRecord
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.runtime.vocabulary import GradingStatus, Preferred
from litellm_messplus.serving.judges import check_judges
from litellm_messplus.settings.load import load_settings
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.store import log
from litellm_messplus.store.judging import LabelCosts, first_request, label_costs, preferences
from tests.support.builders import (
    LARGE,
    MEDIUM,
    NOW,
    SMALL,
    exploration_call,
    request,
    served_call,
    situation,
)

SAVED = LabelCosts(requests=1000, saved=1000.0, largest_today=10.0, judging=10.0)
COSTS = 1.0, 0.0, 2.0
"""Of a request: an answer of the largest, none of others, and what comparing them costs."""


def purse(
    known: LabelCosts | None = SAVED, start_allowance: float = START_ALLOWANCE, **buying: Any
) -> LabelPurse:
    settings = ZooSettings.model_validate({"alpha": 0.7, "buy_labels": buying})
    assert settings.buy_labels is not None
    made = LabelPurse(settings, settings.buy_labels, start_allowance)
    if known is not None:
        made.learn(known, 24.0, 0.0)
    return made


def test_nothing_is_bought_before_the_log_was_looked_at() -> None:
    assert purse(None).probability(1.0, *COSTS) == (0.0, 0.0)


def test_a_zoo_that_saves_enough_buys_what_is_wanted() -> None:
    assert purse().probability(0.3, *COSTS) == (0.3, 3.0)  # an answer, and two comparisons


def test_grading_needs_no_answer_of_the_largest() -> None:
    assert purse(how="grade").probability(0.3, 1.0, 0.0, 1.0) == (0.3, 1.0)


def test_a_judge_without_a_known_price_is_taken_for_as_expensive_as_the_largest() -> None:
    assert purse().probability(0.3, 2.0, 0.0, None) == (0.3, 6.0)
    assert purse(how="grade").probability(0.3, 2.0, 0.0, None) == (0.3, 2.0)


@pytest.mark.parametrize("limit", [{"budget_per_day": 0.0}, {"share_of_saved": 0.0}])
def test_a_purse_of_nothing_buys_nothing(limit: dict[str, float]) -> None:
    known = LabelCosts(requests=10, saved=1000.0)

    assert purse(known, start_allowance=0.0, **limit).probability(1.0, *COSTS)[0] == 0.0


def test_what_is_kept_aside_is_not_spent_twice() -> None:
    made = purse(budget_per_day=30.0)
    bought = 0
    for number in range(100):
        probability, expected = made.probability(1.0, *COSTS)
        if probability > 0.0:
            made.reserve(f"r{number}", expected)
            bought += 1

    assert bought == 4  # and so much is left that one of twice the usual cost could be paid


def test_answers_beside_the_largests_are_paid_within_the_budget_too() -> None:
    made = purse(budget_per_day=21.0)

    probability, expected = made.probability(1.0, 1.0, 0.5, 2.0)
    assert probability > 0.0
    assert expected == 3.5
    made.reserve("r1", expected)
    assert made.probability(1.0, 1.0, 4.1, 2.0)[0] == 0.0  # 14 are left of 14.2
    assert made.probability(1.0, 1.0, 0.0, 2.0, "another key")[0] > 0.0


@given(st.floats(0.0, 100.0), st.lists(st.floats(0.6, 1.5), min_size=1, max_size=20))
def test_an_expensive_prompt_is_drawn_as_often(budget: float, costs: list[float]) -> None:
    """Else the judged prompts would be cheaper, and so easier, than those of the promise."""
    made = [purse(budget_per_day=budget) for _ in range(2)]
    for cost in costs:
        for each in made:
            each.probability(1.0, cost, 0.0, 0.0, "key")
    cheap, expensive = (
        each.probability(1.0, cost, 0.0, 0.0, "key")[0]
        for each, cost in zip(made, (0.99, 1.01), strict=True)
    )
    assert cheap == expensive


def test_answers_may_be_twice_as_long_as_expected_within_the_budget() -> None:
    made = purse(budget_per_day=20.0)
    spent = 0.0
    for number in range(100):
        probability, _ = made.probability(1.0, *COSTS)
        if probability > 0.0:
            spent += 2.0 * 3.0
            made.learn(replace(SAVED, unseen_today=spent), 24.0, float(number))

    assert spent == 12.0


def test_a_longer_answer_than_expected_is_paid_where_it_is_left() -> None:
    made = purse(budget_per_day=10.0)
    made.reserve("r1", 2.0)

    assert made.covers("r1", 4.0)  # the margin
    assert made.reserved == 4.0
    assert made.covers("r1", 9.0)
    assert made.reserved == 9.0
    assert not made.covers("r1", 11.0)
    assert not made.covers("r2", 2.0)
    assert made.reserved == 9.0


def test_the_first_requests_buy_labels_before_anything_is_saved() -> None:
    made = purse(None)
    made.learn(LabelCosts(), 0.0, 0.0)
    found = [made.probability(1.0, *COSTS)[0] for _ in range(200)]

    assert found[0] == 0.0
    assert found[-1] > 0.5


def test_a_zoo_of_joules_pays_its_judge_in_joules() -> None:
    settings = ZooSettings.model_validate(
        {
            "alpha": 0.7,
            "cost_unit": "joule",
            "electricity": {"price_per_kwh": 3.6},  # a dollar is a megajoule
            "buy_labels": {"how": "grade"},
        }
    )
    assert settings.buy_labels is not None
    made = LabelPurse(settings, settings.buy_labels)
    made.learn(LabelCosts(saved=1e9), 24.0, 0.0)

    assert made.probability(0.3, 5.0, 0.0, 2.0)[1] == pytest.approx(2e6)


ESTIMATES = ((SMALL, 1.0, 0.5), (MEDIUM, 3.0, 0.7), (LARGE, 5.0, 0.9))


def test_all_but_one_of_the_cheaper_ones_may_answer_beside_the_largest() -> None:
    assert unseen_costs(situation(*ESTIMATES)) == (5.0, 3.0)
    assert unseen_costs(situation(*ESTIMATES[2:])) == (5.0, 0.0)


@pytest.mark.parametrize(
    ("called", "extra"),
    [
        ({SMALL}, LARGE),
        ({SMALL, MEDIUM}, LARGE),
        ({SMALL, LARGE}, None),
        ({LARGE}, MEDIUM),
    ],
)
def test_the_largest_answers_beside_and_a_cheaper_one(called: set[str], extra: str | None) -> None:
    assert compared_too(called, situation(*ESTIMATES)) == extra


def test_without_a_healthy_largest_there_is_nothing_to_compare_with() -> None:
    assert compared_too({SMALL}, situation(*ESTIMATES[:2])) is None
    assert compared_too({LARGE}, situation(ESTIMATES[2])) is None


PRICED = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}


def listed(name: str, model: str, **info: float) -> dict[str, Any]:
    return {"model_name": name, "litellm_params": {"model": model}, "model_info": info}


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"buy_labels": {"judge": "z"}}, "judge"),
        ({"buy_labels": {"judge": "nobody"}, "label_rate": 0.1}, "judge"),
        ({"buy_labels": {"judge": "free"}}, "judge"),
        (
            {"buy_labels": {"judge": "free", "budget_per_day": 1}, "label_rate": 0.1},
            "budget_per_day",
        ),
    ],
)
def test_a_judge_that_cannot_be_one_is_refused(given: Any, key: str) -> None:
    settings = load_settings({"messplus": {"zoos": {"z": {"alpha": 0.7, **given}}}})
    models = [listed("z", "openai/a", **PRICED), listed("free", "openai/nobody-knows")]

    with pytest.raises(ConfigurationError) as refused:
        check_judges(settings, models)
    assert refused.value.key == f"messplus.zoos.z.buy_labels.{key}"


@pytest.mark.parametrize(
    "given", [{"labels": "auto"}, {"buy_labels": {}}, {"buy_labels": {"judge": "critic"}}]
)
def test_the_largest_judges_where_nobody_is_named(given: Any) -> None:
    settings = load_settings({"messplus": {"zoos": {"z": {"alpha": 0.7, **given}}}})

    check_judges(settings, [listed("z", "openai/a", **PRICED), listed("critic", "b", **PRICED)])


def graded(number: int, request_id: str, **changed: Any) -> GradingRecord:
    made: dict[str, Any] = {
        "judge": "critic",
        "status": GradingStatus.GRADED,
        "answers": 2,
        "cost": 0.5,
    }
    made |= {"zoo_cost": 0.5, **changed}
    return GradingRecord(f"g{number}", request_id, NOW, **made)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, 0.5),
        ({"cost_unit": "joule", "electricity": {"price_per_kwh": 0.36}}, 0.5 / 1e-7),
        ({"cost_unit": "joule"}, None),
    ],
)
def test_a_grading_costs_in_the_zoos_unit(more: dict[str, Any], expected: float | None) -> None:
    zoo = load_settings({"messplus": {"zoos": {"z": {"alpha": 0.7, **more}}}}).zoos["z"]
    written: list[GradingRecord] = []

    write_in_unit(written.append, zoo, graded(1, "r1", zoo_cost=None))
    write_in_unit(written.append, zoo, graded(2, "r1", cost=None, zoo_cost=None))

    assert [each.zoo_cost for each in written] == [expected and pytest.approx(expected), None]


async def test_what_labels_cost_is_read_beside_what_is_saved(database: AsyncEngine) -> None:
    """Of an explored request that cost 5 and 1, at 5 for the largest alone, and was graded; and of
    a cheap one."""
    cheap = request("r2", created_at=NOW - timedelta(days=1), is_exploration=False)
    await log.append(
        database,
        [
            *(request("r1"), served_call("r1"), exploration_call("r1")),
            *(cheap, served_call("r2", candidate=SMALL, cost=1.0)),
            *(graded(1, "r1"), graded(2, "r2", cost=None, zoo_cost=None)),
        ],
    )
    async with database.connect() as connection:
        found = await label_costs(connection, NOW.date(), NOW.date() - timedelta(days=1))
        first = await first_request(connection, "zoo", NOW.date())

    assert found == {
        "zoo": LabelCosts(
            requests=2,
            saved=2.5,
            unseen=1.0,
            unseen_today=1.0,
            largest_today=5.0,
            largest_before=5.0,
            judging=0.5,
            judging_today=0.5,
        )
    }
    assert first == NOW.astimezone(UTC)


async def test_the_places_that_a_judge_preferred_are_counted(database: AsyncEngine) -> None:
    places = [*[Preferred.FIRST] * 3, Preferred.SECOND, Preferred.NEITHER, None]
    comparisons = [graded(n, "r1", preferred=place) for n, place in enumerate(places)]
    await log.append(database, [request("r1"), *comparisons])
    async with database.connect() as connection:
        found = await preferences(connection)
        newest = await preferences(connection, window=2)

    assert found == {("zoo", "critic"): PositionBias(3, 1, 1)}
    assert newest == {("zoo", "critic"): PositionBias(0, 1, 1)}
