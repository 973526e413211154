"""The limits besides alpha as a fold: late requests, the money of a day, and what is pending."""

import pytest

from litellm_messplus.routing.limits import DAY, LATE_SHARE, Lateness, Limits
from litellm_messplus.state import snapshot
from litellm_messplus.state.entries import LimitedCall, LimitedUse
from litellm_messplus.state.limits import (
    PENDING,
    WAIT_SECONDS,
    LimitAccount,
    Pending,
    expected_use,
    is_late,
    logged,
)
from tests.support.builders import LARGE, SMALL, build_state, decided, settled

NOON = 100 * DAY + DAY / 2
LATENCY = {"late_after": 2.0}


def ended(request_id: str = "r1", **changed: object) -> LimitedCall:
    call = LimitedCall("default", request_id, NOON, is_served=True, is_late=False, cost=3.0)
    return call._replace(**changed)  # type: ignore[arg-type]


def opened(request_id: str = "r1", at: float = NOON) -> LimitAccount:
    account = LimitAccount()
    account.decided(request_id, Pending(at, late=0.25, cost=2.0))
    return account


@pytest.mark.parametrize(
    ("call", "owed", "spent"),
    [
        (None, 0.25 - LATE_SHARE, 2.0),
        (ended(is_late=True), 1.0 - LATE_SHARE, 3.0),
        (ended(is_late=False), -LATE_SHARE, 3.0),
        (ended(cost=None), -LATE_SHARE, 2.0),
        (ended(is_late=None), 0.0, 3.0),
        (ended(is_served=False, is_late=True), 0.25 - LATE_SHARE, 5.0),
    ],
    ids=[
        *("what is expected counts", "a late call", "one in time", "an unknown cost"),
        *("a call that says nothing of time", "one that no user sees"),
    ],
)
def test_a_request_counts_with_what_is_expected_until_its_call_has_ended(
    call: LimitedCall | None, owed: float, spent: float
) -> None:
    account = opened()
    if call is not None:
        account.ended(call)
    assert (account.late_owed, account.spent(100)) == (owed, spent)


def test_a_new_day_begins_with_nothing_spent_and_what_ends_then_belongs_to_its_own_day() -> None:
    account = opened("before")
    assert account.spent(101) == 0.0
    account.decided("after", Pending(NOON + DAY, late=0.0, cost=1.0))
    assert account.spent(101) == 1.0
    account.ended(ended("before"))
    assert account.spent(101) == 1.0
    account.ended(ended("after", at=NOON + DAY))
    assert account.spent(101) == 3.0


def test_a_request_of_yesterday_that_another_worker_writes_late_does_not_bring_it_back() -> None:
    account = opened("today", at=NOON + DAY)
    account.decided("yesterday", Pending(NOON, late=0.0, cost=9.0))
    assert (account.day, account.spent(101)) == (101, 2.0)


def test_calls_that_never_end_are_waited_for_in_a_bounded_number_and_time() -> None:
    account = LimitAccount()
    for number in range(PENDING + 50):
        account.decided(f"r{number}", Pending(NOON, late=0.5, cost=1.0))
    assert len(account.pending) == PENDING
    account.decided("later", Pending(NOON + WAIT_SECONDS + 1.0, late=0.5, cost=1.0))
    assert list(account.pending) == ["later"]
    assert account.expected_late == pytest.approx(0.5 - LATE_SHARE)
    assert account.expected_cost == pytest.approx(1.0)


def test_once_nothing_is_pending_nothing_is_left_of_rounding() -> None:
    account = LimitAccount()
    for number in range(30):
        account.decided(f"r{number}", Pending(NOON, late=0.1 * number, cost=0.1))
    for number in range(30):
        account.ended(ended(f"r{number}"))
    assert (account.expected_late, account.expected_cost) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("found", "seconds", "is_answered", "is_repeated", "expected"),
    [
        (LATENCY, 2.5, True, False, True),
        (LATENCY, 2.0, True, False, False),
        (LATENCY, 2.5, False, False, None),
        (LATENCY, None, True, False, None),
        (LATENCY, 9.0, True, True, False),
        ({}, 9.0, True, False, None),
    ],
    ids=["late", "in time", "failed", "no time", "repeated", "no limit"],
)
def test_which_calls_come_late(
    found: dict[str, float],
    seconds: float | None,
    is_answered: bool,
    is_repeated: bool,
    expected: bool | None,
) -> None:
    found_late = is_late(found, seconds, is_answered=is_answered, is_repeated=is_repeated)
    assert found_late is expected


def test_the_log_keeps_the_limits_that_are_set() -> None:
    late = {SMALL: Lateness(0.3, 0.2)}
    both = Limits(2.0, 1.5, 0.25, late, budget=9.0, spent=1.0, allowed=9.0, strain=1.5)
    use = LimitedUse(0.3, 4.0)
    assert logged(both, use) == {
        "expected": {"late": 0.3, "cost": 4.0},
        "binding": "latency",
        "late_after": 2.0,
        "late_owed": 1.5,
        "late_price": 0.25,
        "late": {SMALL: 0.3},
        "budget": 9.0,
        "spent": 1.0,
        "allowed": 9.0,
        "strain": 1.5,
    }
    assert list(logged(Limits(), use)) == ["expected", "binding"]
    assert expected_use(logged(both, use)) == use
    assert expected_use(None) is None


def test_a_snapshot_holds_the_queues_and_the_durations() -> None:
    state = build_state()
    state.apply(decided(at=NOON, expected_use=LimitedUse(0.25, 2.0)))
    state.apply(decided(request_id="r2", at=NOON, expected_use=LimitedUse(0.5, 1.0)))
    state.apply(settled(SMALL, seconds=1.5, limited=ended(is_late=True)))
    loaded = snapshot.load(snapshot.dump(state), build_state())
    assert loaded.limits.plain() == state.limits.plain()
    assert loaded.durations[SMALL].plain() == state.durations[SMALL].plain()
    assert snapshot.dump(loaded) == snapshot.dump(state)


def test_a_level_without_limits_has_no_account() -> None:
    state = build_state()
    state.apply(decided())
    state.apply(settled(LARGE, seconds=1.5))
    assert state.limits.is_empty
    assert len(state.durations[LARGE]) == 1
