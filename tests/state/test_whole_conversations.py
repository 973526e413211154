"""Where a promise counts conversations, a task of many turns is one in the account."""

import json
from dataclasses import replace

import pytest

from litellm_messplus.state import snapshot
from litellm_messplus.state.account import PENDING, Account
from litellm_messplus.state.entries import Decided, Example, Labelled
from litellm_messplus.state.verdict import Given
from litellm_messplus.state.zoo_state import ZooState
from tests.support.builders import (
    LARGE,
    SMALL,
    PairEncoder,
    adaptive_of,
    build_state,
    build_zoo,
    given,
    pair,
    situation,
)

ALPHA, EXPECTED = 0.75, 0.05
ZOO = build_zoo(conversations={"unit": "conversation"}, alpha=ALPHA)


def state() -> ZooState:
    return build_state(ZOO)


def begun(name: str, shortfall: float = EXPECTED) -> Decided:
    return Decided(0, "zoo", "default", name, shortfall, 1, 0.0)


def turn(name: str, first: str, shortfall: float | None = None) -> Decided:
    """A further one: held, unless another model takes over."""
    is_held = shortfall is None
    return replace(begun(name, shortfall or 0.9), counted_with=first, is_held=is_held)


def verdict(
    first: str, value: float, shares: dict[str, float], earlier: tuple[Given, ...] = ()
) -> Labelled:
    return Labelled(
        position=0,
        zoo="zoo",
        service_level="default",
        request_id=first,
        call_id=f"{first}.0",
        alpha=ALPHA,
        is_served=True,
        given=given(value),
        earlier=earlier,
        example=Example(first, PairEncoder.name, pair(1.0, 0.0), SMALL, False),
        shares=tuple(shares.items()),
    )


def account(found: ZooState) -> Account:
    return adaptive_of(found).accounts["default"]


def weights(found: ZooState) -> dict[str, float]:
    predictor = adaptive_of(found).predictor
    means = zip(predictor.candidates, predictor.means, strict=True)
    return {name: mean.weight for name, mean in means if mean.weight}


def test_fifty_turns_are_one_in_the_account_and_fifty_in_the_numbering() -> None:
    found = state()
    found.apply(begun("c"))
    for number in range(49):
        found.apply(turn(f"t{number}", "c"))

    assert account(found).requests == 1
    assert account(found).queue == EXPECTED
    assert found.requests["default"] == 50
    assert found.counted("default") == 1


def test_a_model_that_takes_over_changes_what_is_expected_by_its_share() -> None:
    found = state()
    for entry in (begun("c", 0.4), turn("t1", "c"), turn("t2", "c", -0.1), turn("t3", "c")):
        found.apply(entry)

    assert account(found).queue == pytest.approx((0.4 + 0.4 - 0.1 - 0.1) / 4)


def test_one_verdict_settles_all_of_it_once() -> None:
    found = state()
    for entry in (begun("c"), turn("t1", "c"), turn("t2", "c")):
        found.apply(entry)
    found.apply(verdict("c", 0.0, {SMALL: 1.0}))

    assert account(found).queue == ALPHA
    assert account(found).answered_requests == 1
    assert weights(found) == {SMALL: 1.0}


def test_the_same_verdict_again_changes_nothing() -> None:
    found = state()
    for entry in (begun("c"), turn("t1", "c"), verdict("c", 0.0, {SMALL: 1.0})):
        found.apply(entry)
    before = snapshot.dump(found)
    found.apply(verdict("c", 0.0, {SMALL: 1.0}, earlier=(given(0.0),)))

    assert snapshot.dump(found) == before


def test_a_contrary_verdict_takes_the_first_ones_place() -> None:
    """Though the conversation went on between them, and another model took over."""
    found = state()
    for entry in (begun("c"), turn("t1", "c"), verdict("c", 0.0, {SMALL: 1.0})):
        found.apply(entry)
    found.apply(turn("t2", "c", -0.1))
    found.apply(turn("t3", "c"))
    assert account(found).queue == ALPHA, "it went on after its verdict, which stands"
    found.apply(verdict("c", 1.0, {SMALL: 0.5, LARGE: 0.5}, earlier=(given(0.0),)))

    assert account(found).queue == pytest.approx(ALPHA - 1.0)
    assert account(found).answered_requests == 1
    assert weights(found) == pytest.approx({SMALL: 0.5, LARGE: 0.5})


def test_two_models_learn_it_by_their_shares() -> None:
    found = state()
    for entry in (begun("c"), turn("t1", "c"), turn("t2", "c"), turn("t3", "c", -0.1)):
        found.apply(entry)
    found.apply(verdict("c", 1.0, {SMALL: 0.75, LARGE: 0.25}))

    assert weights(found) == {SMALL: 0.75, LARGE: 0.25}


def test_one_that_was_judged_before_it_went_on_is_judged_anew() -> None:
    """The first verdict was on a single request, which has no shares."""
    found = state()
    found.apply(begun("c"))
    found.apply(replace(verdict("c", 1.0, {}), shares=()))
    found.apply(turn("t1", "c", 0.4))
    found.apply(verdict("c", 0.0, {SMALL: 0.5, LARGE: 0.5}, earlier=(given(1.0),)))

    assert weights(found) == pytest.approx({SMALL: 0.5, LARGE: 0.5})
    assert account(found).answered_requests == 1


def test_one_that_nobody_judges_counts_with_its_expectation_and_is_given_up() -> None:
    """After so many conversations, not requests: those of an agent come in dozens."""
    found = state()
    found.apply(begun("c"))
    for number in range(2 * PENDING):
        found.apply(turn(f"t{number}", "c"))
    assert account(found).queue == EXPECTED
    for number in range(PENDING):
        found.apply(begun(f"later{number}", 0.0))

    assert account(found).queue == 0.0
    assert not account(found).courses


def test_no_more_courses_are_remembered_than_conversations_are_pending() -> None:
    found = state()
    for number in range(3 * PENDING):
        found.apply(begun(f"c{number}"))
        found.apply(turn(f"t{number}", f"c{number}"))

    assert len(account(found).courses) == len(account(found).pending) == PENDING


def test_a_turn_whose_conversation_is_not_known_changes_nothing_but_the_numbering() -> None:
    found = state()
    found.apply(begun("c"))
    found.apply(turn("t1", "nobody"))

    assert account(found).queue == EXPECTED
    assert found.requests["default"] == 2


def test_a_snapshot_goes_on_as_if_it_had_never_been_saved() -> None:
    found = state()
    entries = (
        *(begun("c"), turn("t1", "c"), begun("d"), turn("t2", "d", 0.4)),
        *(verdict("c", 0.0, {SMALL: 1.0}), turn("t3", "d"), turn("t4", "c", -0.1)),
        *(verdict("c", 1.0, {SMALL: 0.5, LARGE: 0.5}, (given(0.0),)), verdict("d", 1.0, {})),
    )
    for place in range(len(entries)):
        saved = state()
        for entry in entries[:place]:
            saved.apply(entry)
        loaded = snapshot.load(snapshot.dump(saved), state())
        for entry in entries[place:]:
            loaded.apply(entry)
        if place == 0:
            found = loaded
        assert snapshot.dump(loaded) == snapshot.dump(found)


def test_where_requests_are_counted_a_snapshot_has_no_word_of_it() -> None:
    found = build_state()
    found.apply(begun("c"))
    found.apply(verdict("c", 0.0, {}))
    plain, _ = snapshot.taken(found)

    assert not {"turns", "credits"} & plain.keys()
    assert "courses" not in json.dumps(plain)


def test_a_cold_first_call_makes_no_candidate_look_expensive() -> None:
    """The calls after it find a cache, as the average call does at which the price is found: with
    three times the average call's cost of each, the same is decided."""
    found = state()
    for number in range(60):
        found.apply(begun(f"c{number}"))
        found.apply(verdict(f"c{number}", float(number % 2), {SMALL: 1.0}))
        found.apply(verdict(f"c{number}", 1.0, {LARGE: 1.0}, earlier=(given(0.0),)))
    policy, level = adaptive_of(found), ZOO.levels["default"]
    usual = replace(situation((SMALL, 1.0, 0.4), (LARGE, 6.0, 0.9), alpha=ALPHA), counted=60)
    cold = replace(
        usual, estimates=tuple(replace(each, cost=3.0 * each.cost) for each in usual.estimates)
    )

    assert policy.decide(level, cold) == policy.decide(level, usual)
    assert policy.decide(level, cold) != policy.decide(level, replace(cold, counted=None))
