"""Where a promise counts conversations, a task of many turns is one in the account."""

import json
from dataclasses import replace

import pytest

from litellm_messplus.state import snapshot
from litellm_messplus.state.account import PENDING, Account
from litellm_messplus.state.entries import Decided, Entry, Example, Labelled
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


def state(*entries: Entry) -> ZooState:
    found = build_state(ZOO)
    for entry in entries:
        found.apply(entry)
    return found


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
    found = state(begun("c"), *(turn(f"t{number}", "c") for number in range(49)))
    assert (account(found).requests, account(found).queue) == (1, EXPECTED)
    assert (found.requests["default"], found.counted("default")) == (50, 1)


HALF = {SMALL: 0.5, LARGE: 0.5}
MISSED = verdict("c", 0.0, {SMALL: 1.0})
TURNS = (begun("c"), turn("t1", "c"))


@pytest.mark.parametrize(
    ("entries", "owed", "answered", "learned"),
    [
        (
            (begun("c", 0.4), turn("t1", "c"), turn("t2", "c", -0.1), turn("t3", "c")),
            *((0.4 + 0.4 - 0.1 - 0.1) / 4, 0, {}),
        ),
        ((*TURNS, turn("t2", "c"), MISSED), ALPHA, 1, {SMALL: 1.0}),
        ((*TURNS, MISSED, turn("t2", "c", -0.1), turn("t3", "c")), ALPHA, 1, {SMALL: 1.0}),
        (
            (*TURNS, MISSED, turn("t2", "c", -0.1), verdict("c", 1.0, HALF, (given(0.0),))),
            *(ALPHA - 1.0, 1, HALF),
        ),
        (
            (*TURNS, turn("t2", "c", -0.1), verdict("c", 1.0, {SMALL: 0.75, LARGE: 0.25})),
            *(ALPHA - 1.0, 1, {SMALL: 0.75, LARGE: 0.25}),
        ),
        (
            (
                *(begun("c"), verdict("c", 1.0, {}), turn("t1", "c", 0.4)),
                verdict("c", 0.0, HALF, earlier=(given(1.0),)),
            ),
            *(ALPHA, 1, HALF),
        ),
        ((begun("c"), turn("t1", "nobody")), EXPECTED, 0, {}),
    ],
    ids=[
        *(
            "a model that takes over changes what is expected",
            "one verdict settles it",
        ),
        *("which stands though it goes on", "a contrary one takes its place"),
        *("two models learn it by their shares", "judged before it went on: judged anew"),
        "a turn of no known conversation",
    ],
)
def test_a_conversation_is_one_in_the_account(
    entries: tuple[Entry, ...], owed: float, answered: int, learned: dict[str, float]
) -> None:
    found = state(*entries)
    assert account(found).queue == pytest.approx(owed)
    assert account(found).answered_requests == answered
    assert weights(found) == pytest.approx(learned)


def test_the_same_verdict_again_changes_nothing() -> None:
    again = replace(MISSED, earlier=(given(0.0),))
    assert snapshot.dump(state(*TURNS, MISSED, again)) == snapshot.dump(state(*TURNS, MISSED))


def test_one_without_a_verdict_counts_with_its_expectation_and_is_given_up() -> None:
    """After so many conversations, not requests: those of an agent come in dozens. No more courses
    are remembered than conversations are pending."""
    found = state(begun("c"), *(turn(f"t{number}", "c") for number in range(2 * PENDING)))
    assert account(found).queue == EXPECTED
    for number in range(PENDING):
        found.apply(begun(f"later{number}", 0.0))
        found.apply(turn(f"again{number}", f"later{number}", 0.0))
    assert account(found).queue == 0.0
    assert len(account(found).courses) == len(account(found).pending) == PENDING


def test_a_snapshot_goes_on_as_if_it_had_never_been_saved() -> None:
    entries = (
        *(begun("c"), turn("t1", "c"), begun("d"), turn("t2", "d", 0.4)),
        *(MISSED, turn("t3", "d"), turn("t4", "c", -0.1)),
        *(verdict("c", 1.0, HALF, (given(0.0),)), verdict("d", 1.0, {})),
    )
    for place in range(len(entries)):
        loaded = snapshot.load(snapshot.dump(state(*entries[:place])), state())
        for entry in entries[place:]:
            loaded.apply(entry)
        assert snapshot.dump(loaded) == snapshot.dump(state(*entries))


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
        for name, value in ((SMALL, float(number % 2)), (LARGE, 1.0)):
            found.apply(begun(f"{name}{number}"))
            found.apply(verdict(f"{name}{number}", value, {name: 1.0}))
    policy, level = adaptive_of(found), ZOO.levels["default"]
    usual_one = situation((SMALL, 1.0, 0.4), (LARGE, 6.0, 0.9), alpha=ALPHA)
    usual = replace(usual_one, counted=60)
    cold = replace(
        usual, estimates=tuple(replace(each, cost=3.0 * each.cost) for each in usual.estimates)
    )

    assert policy.decide(level, cold) == policy.decide(level, usual)
    assert policy.decide(level, cold) != policy.decide(level, replace(cold, counted=None))
