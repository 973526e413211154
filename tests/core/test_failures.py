"""A failure is no verdict on a model: what was expected of it is taken back."""

import pytest

from litellm_messplus.core.entries import FailedCall, Settled
from litellm_messplus.core.zoo_state import ZooState
from litellm_messplus.records import served_call_id
from tests.support.builders import (
    POLICIES,
    adaptive_of,
    build_state,
    build_zoo,
    decided,
    given,
    labelled,
    settled,
)

ALPHA = 0.6


def ended(request_id: str, *before: float, is_served: bool = True) -> Settled:
    """A failed call, with the labels of users before its end."""
    call = FailedCall("default", request_id, ALPHA, is_served=is_served, is_bought=False)
    earlier = tuple(given(value) for value in before)
    return settled(call_id=served_call_id(request_id), failed=call, given=earlier)


def fail(state: ZooState, request_id: str) -> None:
    state.apply(decided(request_id=request_id, expected_shortfall=0.3))
    state.apply(ended(request_id))


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
        assert {**known, "requests": 0, "passed": 0} == {**wanted, "requests": 0, "passed": 0}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_what_users_say_of_an_error_moves_no_queue(policy: str, value: float) -> None:
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
