"""A failure is no verdict on a model: what was expected of it is taken back, and of an outage no
more than a few requests are repaid, where failures count at all."""

from collections import Counter

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from litellm_messplus.records import served_call_id
from litellm_messplus.state import account as module
from litellm_messplus.state.account import FEW, REPAID, FailureDebt
from litellm_messplus.state.entries import FailedCall, Settled
from litellm_messplus.state.zoo_state import ZooState
from tests.support.builders import (
    POLICIES,
    adaptive_of,
    build_state,
    build_zoo,
    decided,
    failure_label,
    given,
    labelled,
    settled,
)
from tests.support.closed_loop import Model, Outage, Run, run

ALPHA = 0.6


def ended(request_id: str, *before: float, is_served: bool = True) -> Settled:
    """A failed call, with the labels of users before its end."""
    call = FailedCall("default", request_id, ALPHA, is_served=is_served, is_bought=False)
    earlier = tuple(given(value) for value in before)
    return settled(call_id=served_call_id(request_id), failed=call, given=earlier)


def fail(state: ZooState, request_id: str, *, counts: bool = False) -> None:
    state.apply(decided(request_id=request_id, expected_shortfall=0.3))
    state.apply(ended(request_id))
    if counts:
        state.apply(failure_label(request_id, ALPHA))


def serve(state: ZooState, request_id: str, satisfaction: float) -> None:
    state.apply(decided(request_id=request_id, expected_shortfall=0.1))
    call_id = served_call_id(request_id)
    state.apply(settled(call_id=call_id))
    state.apply(labelled(satisfaction, request_id=request_id, call_id=call_id))


@pytest.mark.parametrize("policy", POLICIES)
def test_an_outage_leaves_no_trace_in_the_account(policy: str) -> None:
    there, not_there = (build_state(build_zoo(policy=policy)) for _ in range(2))
    for number in range(300):
        for state in (there, not_there):
            serve(state, f"r{number}", float(number % 5 > 1))
        if number >= 180:
            fail(there, f"failed{number}")

    assert there.policy.queue("default") == pytest.approx(not_there.policy.queue("default"))
    if policy == "adaptive":
        known, wanted = (
            adaptive_of(each).account("default").plain() for each in (there, not_there)
        )
        assert known["requests"] == wanted["requests"] + 120
        assert {**known, "requests": 0} == {**wanted, "requests": 0}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_what_users_say_of_an_error_moves_no_queue_whenever_they_say_it(
    policy: str, value: float
) -> None:
    state = build_state(build_zoo(policy=policy))
    serve(state, "missed", 0.0)
    serve(state, "missed too", 0.0)
    owed = state.policy.queue("default")

    state.apply(decided(request_id="r1"))
    state.apply(labelled(value))  # the client was faster than the log event
    assert state.policy.queue("default") != owed
    state.apply(ended("r1", value))
    assert state.policy.queue("default") == pytest.approx(owed)
    state.apply(labelled(1.0 - value, previous=value, is_failed=True))
    assert state.policy.queue("default") == pytest.approx(owed)


def test_an_unseen_call_that_fails_is_none_that_no_one_labels() -> None:
    state = build_state()
    for number in range(50):
        state.apply(decided(request_id=f"r{number}", calls=2))
        state.apply(ended(f"r{number}", is_served=False))

    assert adaptive_of(state).unseen.labelled_share == 1.0


events = st.lists(st.sampled_from(["failed", "judged"]), max_size=400)


@drawn(events, st.floats(0.01, 0.99), st.floats(0.01, 1.0))
def test_an_outage_of_any_length_is_owed_a_few_requests(
    taken: list[str], alpha: float, answered_share: float
) -> None:
    debt, owed, room = FailureDebt(), 0.0, answered_share * REPAID * (1.0 - alpha)
    for each in taken:
        if each == "judged":
            debt.judged()
        else:
            more = debt.failed(alpha, answered_share)
            assert 0.0 <= more <= answered_share * alpha
            owed += more
    assert owed <= room + FEW * taken.count("judged") + 1e-9
    for _ in range(200):  # a few among many are made up for in full
        for _ in range(20):
            debt.judged()
        assert debt.failed(0.9, 1.0) <= 0.9
    assert debt.failed(0.9, 1.0) == pytest.approx(0.9)


@pytest.mark.parametrize("policy", POLICIES)
def test_where_failures_count_an_outage_is_owed_what_the_bound_says(policy: str) -> None:
    state = build_state(build_zoo(policy=policy))
    for number in range(110):
        fail(state, f"r{number}", counts=True)

    assert state.policy.queue("default") == pytest.approx(REPAID * (1.0 - ALPHA))


# The outage of half a minute: 110 of 120 requests fail


class Steady(Model):
    """Satisfies each request a little, so that two runs differ by what is owed, and by no luck."""

    def satisfies(self, drawn: float, is_long: bool) -> float:
        return self.rate


ZOOS = [
    (Steady("small", 0.8, 1.0), Steady("large", 0.975, 10.0)),
    (Steady("small", 0.8, 1.0), Steady("medium", 0.88, 3.0), Steady("large", 0.975, 10.0)),
]
BEGINS, LASTS, AFTER = 201, 120, 300
FAILING = [number for number in range(BEGINS, BEGINS + LASTS) if number % 12]


def after_the_outage(models: tuple[Model, ...], *, counts: bool) -> Counter[str]:
    """How many of the requests that follow each model serves."""
    found: Run = run(
        models,
        alpha=0.9,
        requests=BEGINS - 1 + LASTS + AFTER,
        seed=1,
        outage=Outage(FAILING, counts),
    )
    return Counter(found.served[-AFTER:])


@pytest.mark.parametrize("models", ZOOS, ids=len)
def test_at_most_50_requests_are_served_otherwise_for_an_outage_that_counts(
    models: tuple[Model, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(FAILING) == 110
    as_before, repaid = (after_the_outage(models, counts=counts) for counts in (False, True))
    assert 0 < (repaid - as_before).total() <= 50

    monkeypatch.setattr(module, "REPAID", 1e9)
    unbounded = after_the_outage(models, counts=True)
    assert (unbounded - as_before).total() > 100
