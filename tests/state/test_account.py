"""The account of a service level: what is owed, with predictions in place of verdicts to come."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.state import account as module
from litellm_messplus.state.account import CREDIT, PENDING, Account

ALPHA = 0.75

shortfalls = st.floats(-1.0, 1.0)
steps = st.lists(
    st.tuples(st.sampled_from(["decided", "answered", "revised"]), st.integers(0, 9), shortfalls),
    max_size=60,
)


def answer(account: Account, request_id: str, satisfaction: float, alpha: float = ALPHA) -> None:
    account.answered(request_id, alpha - satisfaction)


def walk(account: Account, taken: list[tuple[str, int, float]], start: int = 0) -> None:
    """Whatever comes, in whatever order."""
    for number, (kind, back, shortfall) in enumerate(taken, start):
        if kind == "decided":
            account.decided(f"r{number}", shortfall)
        elif kind == "answered":
            account.answered(f"r{number - back}", shortfall)
        else:
            account.revised(shortfall)


def test_a_new_account_owes_nothing() -> None:
    assert Account().queue == 0.0


def test_a_miss_is_owed_and_a_satisfied_request_is_credit() -> None:
    account = Account()
    answer(account, "r1", 0.0)
    assert account.queue == 0.75
    answer(account, "r2", 1.0)
    answer(account, "r3", 1.0)
    answer(account, "r4", 1.0)
    assert account.queue == 0.0
    answer(account, "r5", 1.0)
    assert account.queue == -0.25


@given(st.lists(st.floats(0.0, 1.0), max_size=30))
def test_within_the_credit_it_is_the_sum_of_alpha_less_satisfaction(verdicts: list[float]) -> None:
    account = Account()
    for number, satisfaction in enumerate(verdicts):
        answer(account, f"r{number}", satisfaction)
    assert account.queue == pytest.approx(sum(ALPHA - verdict for verdict in verdicts))


def test_credit_is_bounded() -> None:
    account = Account()
    for number in range(20 * int(CREDIT)):
        answer(account, f"r{number}", 1.0)
        assert account.queue >= -CREDIT
    assert account.queue == -CREDIT
    answer(account, "a miss", 0.0)
    assert account.queue == -CREDIT + ALPHA


def test_debt_is_not_bounded() -> None:
    account = Account()
    for number in range(4000):
        answer(account, f"r{number}", 0.0)
    assert account.queue == pytest.approx(4000 * ALPHA)


def test_a_request_counts_with_its_prediction_until_its_label_comes() -> None:
    account = Account()
    account.decided("r1", ALPHA - 0.5)
    account.decided("r2", ALPHA - 1.0)
    assert account.queue == 0.25 - 0.25
    answer(account, "r1", 0.0)
    assert account.queue == pytest.approx(ALPHA - 0.25)
    answer(account, "r2", 1.0)
    assert account.queue == pytest.approx(2 * ALPHA - 1.0)
    assert not account.pending


def test_labels_may_come_in_any_order() -> None:
    first, second = Account(), Account()
    for account, order in ((first, ("r1", "r2", "r3")), (second, ("r3", "r1", "r2"))):
        for request_id in ("r1", "r2", "r3"):
            account.decided(request_id, 0.1)
        for request_id in order:
            answer(account, request_id, float(request_id == "r2"))
    assert first.queue == pytest.approx(second.queue)


def test_a_request_that_nobody_judges_is_forgotten_in_the_end() -> None:
    account = Account()
    account.decided("first", 0.5)
    for number in range(PENDING - 1):
        account.decided(f"r{number}", 0.0)
    assert account.queue == 0.5
    assert account.answered_share == 1.0
    account.decided("one too many", 0.0)
    assert account.queue == 0.0
    assert len(account.pending) == PENDING
    assert account.answered_share < 1.0


def test_it_is_forgotten_after_as_many_requests_whether_or_not_those_were_judged() -> None:
    account = Account()
    account.decided("first", 0.5)
    for number in range(2 * PENDING):
        account.decided(f"r{number}", 0.0)
        answer(account, f"r{number}", ALPHA)
    assert not account.pending


def test_the_less_users_answer_the_less_a_pending_request_counts() -> None:
    account = Account()
    shares = []
    for number in range(4 * PENDING):
        account.decided(f"r{number}", 0.5)
        if number % 4 == 0:
            answer(account, f"r{number}", ALPHA)
        shares.append(account.answered_share)
    assert shares[0] == 1.0
    assert shares[-1] == pytest.approx(0.25, abs=0.1)
    assert account.queue == pytest.approx(
        account.answered_share * 0.5 * len(account.pending), abs=1e-9
    )


def test_a_label_after_the_expiry_still_counts_and_exactly_once() -> None:
    account = Account()
    account.decided("late", 0.5)
    for number in range(PENDING):
        account.decided(f"r{number}", 0.0)
    assert (account.queue, account.answered_share) == (0.0, 0.0)  # given up as not answered
    answer(account, "late", 0.0)
    assert (account.queue, account.answered_share) == (ALPHA, 1.0)
    account.revised(0.0 - 1.0)  # a second look says satisfied
    assert account.queue == pytest.approx(ALPHA - 1.0)


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.booleans())
def test_a_second_verdict_is_as_if_it_had_been_the_first(
    first: float, second: float, was_pending: bool
) -> None:
    revised, direct = Account(), Account()
    for account in (revised, direct):
        answer(account, "before", 0.0)
        if was_pending:
            account.decided("r1", 0.1)
    answer(revised, "r1", first)
    revised.revised(first - second)
    answer(direct, "r1", second)
    assert revised.queue == pytest.approx(direct.queue)
    assert revised.answered_share == direct.answered_share
    assert revised.pending == direct.pending


@given(steps)
def test_whatever_comes_it_stays_within_its_bounds(taken: list[tuple[str, int, float]]) -> None:
    account = Account()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PENDING", 4)
        walk(account, taken)
    assert 0.0 <= account.answered_share <= 1.0
    assert account.shortfall >= -CREDIT
    assert len(account.pending) <= 4
    expected = sum(pending.shortfall for pending in account.pending.values())
    assert account.queue == pytest.approx(account.shortfall + account.answered_share * expected)


@given(steps, steps)
def test_written_down_and_read_back_it_goes_on_as_before(
    before: list[tuple[str, int, float]], after: list[tuple[str, int, float]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PENDING", 4)
        account = Account()
        walk(account, before)
        copy = Account.of(json.loads(json.dumps(account.plain())))
        assert copy == account
        assert list(copy.pending) == list(account.pending)
        for each in (account, copy):
            walk(each, after, start=len(before))
    assert copy == account


def test_answers_that_come_after_they_were_given_up_count_as_answers() -> None:
    """However late all labels are, the share of answered requests is what it is."""
    account, late = Account(), 2 * PENDING
    for number in range(10 * PENDING):
        account.decided(f"r{number}", 0.1)
        if number >= late:
            answer(account, f"r{number - late}", 1.0)
    assert account.answered_share > 0.95


@given(steps)
def test_the_share_of_answers_is_a_share(taken: list[tuple[str, int, float]]) -> None:
    account = Account()
    walk(account, taken)
    assert 0.0 <= account.answered_share <= 1.0
