"""The panel: which candidates answer unseen in addition to the choice of a plan, and how often."""

from collections.abc import Sequence
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.decision import Situation
from litellm_messplus.core.trying import (
    KNOWN_WELL,
    LEAST_LABELLED,
    PANEL_SHARE,
    SURELY,
    Knowledge,
    panel,
)
from tests.support.builders import situation

DRAWS = 2000
amounts = st.floats(0.01, 100.0)
models = st.lists(
    st.tuples(amounts, amounts, st.floats(0.0, 1.0), st.floats(0.001, 0.3)), min_size=1, max_size=6
)
"""Each with its usual cost, its cost now, its rate, and how sure that is."""


def known_of(
    columns: Sequence[tuple[float, float, float, float]], labelled: float
) -> tuple[list[float], Knowledge]:
    cost, _, rate, deviation = (list(column) for column in zip(*columns, strict=True))
    return cost, Knowledge(rate, deviation, [1.5] * len(rate), False, labelled)


def priced(columns: Sequence[tuple[float, float, float, float]], **changed: float) -> Situation:
    estimates = [(f"model {place}", now, 0.5) for place, (_, now, *_) in enumerate(columns)]
    return situation(*estimates, **changed)  # type: ignore[arg-type]


def called(
    columns: Sequence[tuple[float, float, float, float]],
    labelled: float = 1.0,
    choice: int = 0,
    **changed: float,
) -> set[int]:
    cost, known = known_of(columns, labelled)
    return set(panel(choice, cost, known, priced(columns, **changed)))


@given(models, st.data(), st.floats(-5.0, 5.0), st.floats(0.0, 1.0), st.floats(0.0, 0.999))
def test_it_is_of_those_who_may_be_worth_their_cost_and_are_not_known_well(
    columns: list[tuple[float, float, float, float]],
    data: st.DataObject,
    queue: float,
    labelled: float,
    draw: float,
) -> None:
    choice = data.draw(st.integers(0, len(columns) - 1))
    cost, known = known_of(columns, labelled)
    found = called(columns, labelled, choice, queue=queue, choice_draw=draw)
    assert found <= called(columns, labelled, choice, queue=queue, choice_draw=draw / 2.0)
    assert choice not in found
    assert labelled >= LEAST_LABELLED or not found
    spent = max(cost[choice], median(cost)) if queue > 0.0 else cost[choice]
    for model in found:
        assert cost[model] <= spent
        assert known.deviation[model] > KNOWN_WELL
        most = known.rate[model] + SURELY * known.deviation[model]
        cheaper = [place for place in range(len(cost)) if cost[place] <= cost[model]]
        assert all(known.rate[o] - SURELY * known.deviation[o] <= most for o in cheaper)


@given(amounts, st.floats(0.1, 0.99), st.floats(0.3, 3.0), st.integers(1, 20_000))
def test_each_costs_a_fixed_share_of_what_is_spent_however_cheap_it_is(
    spent: float, part: float, factor: float, requests: int
) -> None:
    """On a request that costs it more than usual it is called less often. Early on it is more, and
    a call for every request is the most."""
    cheap = part * spent
    columns = [(spent, spent, 0.9, 0.01), (cheap, factor * cheap, 0.8, 0.1)]
    draws = [(number + 0.5) / DRAWS for number in range(DRAWS)]
    calls = sum(1 in called(columns, t=requests, choice_draw=draw) for draw in draws)
    paid = calls / DRAWS * factor * cheap
    share = max(PANEL_SHARE, 8.0 / (requests + 40.0))
    assert paid == pytest.approx(min(share * spent, factor * cheap), abs=factor * cheap / DRAWS)


def test_in_debt_the_middle_of_the_zoo_is_tested_too_and_never_what_costs_more() -> None:
    columns = [(1.0, 1.0, 0.7, 0.05), (5.0, 5.0, 0.8, 0.05), (9.0, 9.0, 0.9, 0.05)]
    assert called(columns, queue=-1.0) == set()
    assert called(columns, queue=1.0) == {1}
    assert called(columns, choice=2, queue=-1.0) == {0, 1}
