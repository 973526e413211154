"""The outlook that the engine brings to a decision: of the recent prompts, at the prices of now."""

import pytest

from litellm_messplus.core.decision import Situation
from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.engine import Engine, Question
from litellm_messplus.core.expectations import OUTLOOKS
from litellm_messplus.core.plan import FEWEST, Frontier, Outlook
from litellm_messplus.core.recent import EVERY
from litellm_messplus.core.snapshot import dump, load
from litellm_messplus.core.surface import read_surface
from tests.support.builders import (
    LARGE,
    MEDIUM,
    SMALL,
    build_engine,
    build_zoo,
    example,
    labelled,
    point,
    settled,
)

CANDIDATES = (SMALL, MEDIUM, LARGE)


def judged(engine: Engine, requests: int, first: int = 0) -> Engine:
    """Each request is answered by one candidate, whose answers all have their own length."""
    for number in range(first, first + requests):
        name = CANDIDATES[number % 3]
        surface = read_surface(Conversation.of_text("1 + " * (number * 7 % 40)))
        seen = example(name, request_id=f"r{number}", surface=surface)
        length = 100 * (1 + number % 3)
        engine.apply(settled(name, call_id=f"r{number}.0", completion_tokens=length, example=seen))
        engine.apply(
            labelled(
                float(number * 7 % 40 < 20),
                request_id=f"r{number}",
                call_id=f"r{number}.0",
                example=seen,
            )
        )
    return engine


def situation_of(engine: Engine, candidates: tuple[str, ...] = CANDIDATES) -> Situation:
    return engine.situation(
        Question("r1", engine.zoo.levels["default"], point(1, 0), 40, candidates)
    )


def outlook(engine: Engine, candidates: tuple[str, ...] = CANDIDATES) -> Outlook:
    found = situation_of(engine, candidates).outlook
    assert found is not None
    return found


def frontier(engine: Engine, candidates: tuple[str, ...] = CANDIDATES) -> Frontier:
    """Of all the candidates."""
    return outlook(engine, candidates).frontier(range(len(candidates)), is_hopeful=False)


def test_there_is_none_before_there_are_enough_prompts() -> None:
    engine = judged(build_engine(), FEWEST - 1)
    assert situation_of(engine).outlook is None
    assert situation_of(judged(engine, EVERY, FEWEST)).outlook is not None
    assert situation_of(judged(build_engine(build_zoo(policy="paper")), 100)).outlook is None


def test_it_is_made_once_until_the_fold_predicts_anew() -> None:
    engine = judged(build_engine(), 4 * FEWEST)
    first = outlook(engine)
    assert outlook(engine) is first
    judged(engine, EVERY - 1, 1000)
    assert outlook(engine) is first
    judged(engine, 1, 2000)
    assert outlook(engine) is not first


def test_it_is_of_the_healthy_candidates_in_their_order() -> None:
    engine = judged(build_engine(), 4 * FEWEST)
    one, other = (SMALL, LARGE), (LARGE, SMALL)
    assert outlook(engine, one) is not outlook(engine, other)
    assert frontier(engine, one) == frontier(engine, other)
    assert frontier(engine, (SMALL,)).costs[-1] < frontier(engine, (LARGE,)).costs[0]


def test_it_is_at_the_prices_as_they_are_now() -> None:
    engine = judged(build_engine(), 4 * FEWEST)
    before = frontier(engine, (LARGE,))
    engine.usual_parts = {LARGE: 2.0}
    after = frontier(engine, (LARGE,))
    assert after.costs == pytest.approx([2.0 * cost for cost in before.costs])
    assert after.rates == before.rates
    engine.usual_parts = {}
    assert frontier(engine, (LARGE,)) == before


def test_no_more_than_the_bound_are_kept_at_once() -> None:
    engine = judged(build_engine(), 4 * FEWEST)
    for step in range(5 * OUTLOOKS):
        engine.usual_parts = {SMALL: 1.0 + step}
        situation_of(engine)
        assert len(engine.expectations._outlooks) <= OUTLOOKS


def test_on_the_recent_prompts_it_has_their_rates_and_costs() -> None:
    engine = judged(build_engine(), 6 * FEWEST)
    recent, use = engine.state.policy.recent, engine.state.use
    assert recent is not None
    for place, name in enumerate(CANDIDATES):
        found = frontier(engine, (name,))
        cost = use.cost(place, engine.zoo.prices[name]).mean()
        assert found.rates[0] == pytest.approx(recent.satisfaction[:, place].mean(), abs=1e-5)
        assert found.costs[0] == pytest.approx(cost, rel=1e-5)
    restarted = build_engine()
    restarted.resume(load(dump(engine.state), restarted.empty_state()))
    assert frontier(restarted) == frontier(engine)
