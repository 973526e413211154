"""The account of a service level: what is owed, with predictions in place of verdicts to come."""

import json
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core import account as module
from litellm_messplus.core.account import CREDIT, DOUBTED, JUDGED, PENDING, Account

ALPHA = 0.75
Step = tuple[str, int, float]
steps = st.lists(
    st.tuples(
        st.sampled_from(["decided", "answered", "revised"]), st.integers(0, 9), st.floats(-1.0, 1.0)
    ),
    max_size=60,
)


def answer(account: Account, request_id: str, satisfaction: float) -> None:
    account.answered(request_id, ALPHA - satisfaction)


def walk(account: Account, taken: list[Step], start: int = 0) -> None:
    """Whatever comes, in whatever order."""
    for number, (kind, back, shortfall) in enumerate(taken, start):
        if kind == "decided":
            account.decided(f"r{number}", shortfall)
        elif kind == "answered":
            account.answered(f"r{number - back}", shortfall)
        else:
            account.revised(shortfall)


@given(st.lists(st.floats(0.0, 1.0), max_size=30))
def test_within_the_credit_it_is_the_sum_of_alpha_less_satisfaction(verdicts: list[float]) -> None:
    account = Account()
    for number, satisfaction in enumerate(verdicts):
        answer(account, f"r{number}", satisfaction)
    assert account.queue == pytest.approx(sum(ALPHA - verdict for verdict in verdicts))


@pytest.mark.parametrize(("verdict", "end"), [(1.0, -CREDIT), (0.0, 4000 * ALPHA)])
def test_credit_is_bounded_and_debt_is_not(verdict: float, end: float) -> None:
    account = Account()
    for number in range(4000):
        answer(account, f"r{number}", verdict)
        assert account.queue >= -CREDIT
    assert account.queue == pytest.approx(end)
    answer(account, "a miss", 0.0)
    assert account.queue == pytest.approx(end + ALPHA)


@pytest.mark.parametrize("order", [("r1", "r2"), ("r2", "r1")])
def test_a_request_counts_with_its_prediction_until_its_label_comes(order: tuple[str, ...]) -> None:
    account = Account()
    account.decided("r1", ALPHA - 0.5)
    account.decided("r2", ALPHA - 0.9)
    assert account.queue == pytest.approx(0.25 - 0.15)
    answer(account, order[0], 0.0)
    other, share = (ALPHA - 0.9, 1.0) if order[0] == "r1" else (0.25, 0.5)
    assert account.queue == pytest.approx(ALPHA + share * other)
    answer(account, order[1], 1.0)
    assert account.queue == pytest.approx(2 * ALPHA - 1.0)
    assert not account.pending


@pytest.mark.parametrize("others_are_judged", [False, True])
def test_an_unjudged_request_is_given_up_and_its_label_counts_once(others_are_judged: bool) -> None:
    account = Account()
    account.decided("first", 0.5)
    for number in range(PENDING - 1):
        account.decided(f"r{number}", 0.0)
        if others_are_judged:
            answer(account, f"r{number}", ALPHA)
    share = 1.0 - 1.0 / PENDING if others_are_judged else 1.0
    assert account.queue == pytest.approx(0.5 * share)
    assert account.answered_share == pytest.approx(share)
    account.decided("one too many", 0.0)
    assert "first" not in account.pending
    assert account.queue == 0.0
    given_up = account.answered_share
    assert given_up == pytest.approx(share if others_are_judged else 0.0)
    answer(account, "first", 0.0)
    assert account.queue == ALPHA
    assert account.answered_share > given_up
    account.revised(0.0 - 1.0)  # a second look says satisfied
    assert account.queue == pytest.approx(ALPHA - 1.0)


@given(st.lists(st.booleans(), min_size=1, max_size=PENDING), st.randoms())
def test_the_share_is_known_at_once(are_judged: list[bool], random: Random) -> None:
    """It is that of the requests up to the newest judged one, in whatever order labels come, and
    the part of a pending request that counts."""
    account = Account()
    for number in range(len(are_judged)):
        account.decided(f"r{number}", 0.5)
    judged = [number for number, is_judged in enumerate(are_judged) if is_judged]
    for number in random.sample(judged, len(judged)):
        answer(account, f"r{number}", ALPHA)
    share = len(judged) / (judged[-1] + 1) if judged else 1.0
    assert account.answered_share == pytest.approx(share)
    assert account.queue == pytest.approx(share * 0.5 * len(account.pending))


def test_labels_that_all_come_late_count() -> None:
    account = Account()
    for number in range(10 * PENDING):
        account.decided(f"r{number}", 0.5)
        if number >= 2 * PENDING:
            answer(account, f"r{number - 2 * PENDING}", 1.0)
    assert account.answered_share > 0.95


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.booleans())
def test_a_second_verdict_is_as_the_first(first: float, second: float, was_pending: bool) -> None:
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


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), max_size=40))
def test_predictions_are_compared_with_their_labels(judged: list[tuple[float, bool]]) -> None:
    """A request whose prediction is no longer pending tells nothing; few tell little."""
    account = Account()
    answer(account, "not decided here", 0.0)
    assert account.overrating.mean == 0.0
    for number, (predicted, is_satisfied) in enumerate(judged):
        account.decided(f"r{number}", ALPHA - predicted)
        answer(account, f"r{number}", float(is_satisfied))
    kept = [np.exp(-age / JUDGED) for age in reversed(range(len(judged)))]
    excess = sum(k * (guess - float(label)) for k, (guess, label) in zip(kept, judged, strict=True))
    assert account.overrating.mean == pytest.approx(excess / (sum(kept) + DOUBTED))


def test_a_second_verdict_and_a_label_of_more_weight_count_in_that_comparison() -> None:
    """A label that stands for two requests counts as two, and a later verdict as if the first."""
    account, direct = Account(), Account()
    for each in (account, direct):
        each.decided("r1", ALPHA - 0.9)
    account.answered("r1", 2.0 * (ALPHA - 1.0), weight=2.0)
    assert account.overrating.excess == pytest.approx(2.0 * (0.9 - 1.0))
    account.revised(2.0 * 1.0)
    direct.answered("r1", 2.0 * ALPHA, weight=2.0)
    assert account.overrating.mean == pytest.approx(direct.overrating.mean)
    assert direct.overrating.mean == pytest.approx(1.8 / (2.0 + DOUBTED))


@given(steps, steps)
def test_it_stays_bounded_and_goes_on_as_written(before: list[Step], after: list[Step]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PENDING", 4)
        account = Account()
        walk(account, before)
        assert 0.0 <= account.answered_share <= 1.0
        assert account.shortfall >= -CREDIT
        assert len(account.pending) <= 4
        expected = sum(pending.shortfall for pending in account.pending.values())
        assert account.queue == pytest.approx(account.shortfall + account.answered_share * expected)
        copy = Account.of(json.loads(json.dumps(account.plain())))
        assert copy == account
        assert list(copy.pending) == list(account.pending)
        for each in (account, copy):
            walk(each, after, start=len(before))
    assert copy == account
