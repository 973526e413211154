"""Candidates come and go by entries of the log: what is learned of the others stays to the bit."""

import pytest

from litellm_messplus.core import snapshot
from litellm_messplus.core.catalog import MOST, plain_price, price_of
from litellm_messplus.core.engine import Engine
from litellm_messplus.costs.price import Price, Tier
from litellm_messplus.runtime.vocabulary import Change
from litellm_messplus.settings.zoo import Zoo
from tests.support.builders import (
    LARGE,
    MEDIUM,
    POLICIES,
    SMALL,
    build_engine,
    build_zoo,
    changed,
    decided,
    example,
    labelled,
    point,
    settled,
)


def taught(policy: str = "adaptive") -> Engine:
    """An engine that has seen requests and labels of every candidate."""
    engine = build_engine(build_zoo(policy=policy))
    for number in range(40):
        name, request_id = (SMALL, MEDIUM, LARGE)[number % 3], f"r{number}"
        seen = example(name, request_id=request_id)
        engine.apply(decided(request_id=request_id))
        engine.apply(settled(name, call_id=f"{request_id}.0", example=seen))
        engine.apply(
            labelled(
                float(number % 4 > 0),
                request_id=request_id,
                call_id=f"{request_id}.0",
                example=seen,
            )
        )
    return engine


@pytest.mark.parametrize("policy", POLICIES)
def test_the_others_are_predicted_as_before_when_a_candidate_comes_and_goes(policy: str) -> None:
    engine, names = taught(policy), [SMALL, MEDIUM, LARGE]
    before = engine.state.policy.predict(point(1.0, 0.0), names)
    arrays = {name: each.copy() for name, each in engine.state.lengths.arrays().items()}

    engine.apply(changed("new"))
    after = engine.state.policy.predict(point(1.0, 0.0), names)
    assert after == pytest.approx(before, abs=0.02)
    assert engine.state.candidates == (*names, "new")

    engine.state.become(names)
    assert engine.state.candidates == tuple(names)
    again = engine.state.lengths.arrays()
    assert {name: each.tobytes() for name, each in again.items()} == {
        name: each.tobytes() for name, each in arrays.items()
    }


def test_what_is_gone_is_no_candidate_and_keeps_what_it_knows() -> None:
    engine = taught()
    plain, _ = snapshot.taken(engine.state)
    assert "catalog" not in plain  # a log without changes is the state that it always was
    before = snapshot.dump(engine.state)
    engine.apply(changed("stranger", Change.GONE))
    assert snapshot.dump(engine.state) == before

    known = engine.state.policy.predict(point(1.0, 0.0), [SMALL])
    engine.apply(changed(SMALL, Change.GONE))
    assert list(engine.zoo.present) == [MEDIUM, LARGE]
    engine.apply(changed(SMALL))
    assert list(engine.zoo.present) == [SMALL, MEDIUM, LARGE]
    assert engine.state.policy.predict(point(1.0, 0.0), [SMALL]) == known
    engine.apply(changed(SMALL, Change.PRICED, price=0.5))
    assert engine.zoo.prices[SMALL] == Price(0.0, 0.5)


def test_what_stands_for_quality_is_settled_by_the_first_request() -> None:
    engine = build_engine(Zoo("zoo", build_zoo().settings, {}))
    engine.apply(changed("a", price=1.0))
    assert engine.zoo.is_waiting
    engine.apply(changed("b", price=2.0))
    assert engine.zoo.largest == "b"

    engine.apply(decided())
    engine.apply(changed("c", price=9.0))
    assert engine.zoo.largest == "b"
    engine.apply(changed("b", Change.GONE))
    assert engine.zoo.largest == "c"


def test_a_zoo_takes_no_more_candidates_than_it_has_room_for_and_forgets_what_is_gone() -> None:
    engine = taught()
    names = [f"m{number}" for number in range(MOST)]
    for name in names:
        engine.apply(changed(name))
    assert len(engine.state.candidates) == MOST
    assert engine.state.catalog.left_out == names[-3:]

    engine.apply(changed("m5", Change.GONE, at=2.0))
    engine.apply(changed("m4", Change.GONE, at=1.0))
    engine.apply(changed("late"))
    assert len(engine.state.candidates) == MOST
    assert "m4" not in engine.state.candidates
    assert {"m5", "late"} <= set(engine.state.candidates)

    for name in [f"x{number}" for number in range(3 * MOST)]:
        engine.apply(changed(name))
    assert len(engine.state.catalog.left_out) <= MOST
    assert len(engine.state.catalog.standings) <= MOST
    loaded = snapshot.load(snapshot.dump(engine.state), engine.empty_state())
    assert loaded.candidates == engine.state.candidates
    assert snapshot.dump(loaded) == snapshot.dump(engine.state)


@pytest.mark.parametrize(
    "price", [Price(), Price(1e-6, 2e-6, request=0.1), Price(1.0, tiers=(Tier(200.0, Price(2.0)),))]
)
def test_a_price_is_the_same_after_json(price: Price) -> None:
    assert price_of(plain_price(price)) == price
