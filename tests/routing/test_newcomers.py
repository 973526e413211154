"""A model that comes while a zoo serves is brought in within a bound, and adopted where it is the
cheapest that holds alpha."""

from dataclasses import replace

import pytest

from litellm_messplus.routing import trying as newcomers
from litellm_messplus.routing.decision import Decision, Estimate, Reason
from tests.support.builders import LARGE, SMALL, adaptive_of, situation
from tests.support.closed_loop import Joining, Model, Run, run

NEW = "new"
ESTIMATES = (Estimate(NEW, 0.1, 0.1, 0.7), Estimate("later", 0.2, 0.2, 0.7))
OLD = [Model(SMALL, 0.5, 1.0), Model(LARGE, 0.95, 10.0)]


def decision(**changed: object) -> Decision:
    found = Decision(
        ranking=(SMALL, LARGE),
        explored=(),
        is_exploration=False,
        exploration_probability=0.05,
        expected_satisfaction=0.8,
        propensity=0.95,
        reason=Reason.AHEAD,
    )
    return replace(found, **changed)  # type: ignore[arg-type]


def tried(
    draw: float,
    queue: float = -1.0,
    unseen_labelled: float = 1.0,
    is_labelled: bool | None = None,
    **changed: object,
) -> Decision:
    asked = situation((SMALL, 1.0, 0.8), (LARGE, 5.0, 0.9), queue=queue, exploration_draw=draw)
    asked = replace(asked, newcomers=ESTIMATES, is_labelled=is_labelled)
    return newcomers.tried(decision(**changed), asked, unseen_labelled)


def test_most_requests_try_no_newcomer_and_rank_them_last() -> None:
    found = tried(0.5)
    assert found.ranking == (SMALL, LARGE, NEW, "later")
    assert (found.explored, found.reason, found.propensity) == ((), Reason.AHEAD, 0.95)


def test_one_in_twenty_tries_the_cheapest_newcomer_unseen() -> None:
    found = tried(0.96)
    assert found.chosen == SMALL
    assert found.explored == (NEW,)
    assert found.reason is Reason.UNSEEN_NEWCOMER


def test_where_nobody_labels_unseen_answers_it_serves_and_the_probabilities_say_so() -> None:
    found, usual = tried(0.96, unseen_labelled=0.0), tried(0.5, unseen_labelled=0.0)
    assert (found.chosen, found.explored, found.reason) == (NEW, (), Reason.NEWCOMER)
    assert found.propensity == newcomers.SHARE
    assert found.expected_satisfaction == 0.7
    assert usual.propensity == pytest.approx(0.95 - newcomers.SHARE)


def test_a_probe_of_another_keeps_its_probability() -> None:
    found = tried(0.01, unseen_labelled=0.0, reason=Reason.PROBE, propensity=0.05)
    assert found.propensity == 0.05


def test_in_debt_no_newcomer_is_tried() -> None:
    assert tried(0.96, queue=0.5).explored == (NEW,)
    assert tried(0.96, queue=1.5).explored == ()
    assert tried(0.96, queue=1.5, unseen_labelled=0.0).chosen == SMALL


def test_in_a_debt_that_no_other_can_repay_it_is() -> None:
    assert tried(0.96, queue=5.0, is_within_reach=False).explored == (NEW,)


def test_where_the_answers_will_not_be_labelled_none_is_tried() -> None:
    assert tried(0.96, is_labelled=False).explored == ()


@pytest.mark.parametrize(
    ("rate", "deviation", "is_settled"),
    [(0.95, 0.05, True), (0.85, 0.05, False), (0.7, 0.05, False), (0.4, 0.05, True)],
)
def test_a_newcomer_is_settled_when_its_labels_tell(
    rate: float, deviation: float, is_settled: bool
) -> None:
    assert newcomers.is_settled(9, 0.8, rate, deviation, 3.0) is is_settled


def test_without_labels_of_its_own_nothing_is_told_by_those_of_the_others() -> None:
    assert not newcomers.is_settled(newcomers.FEWEST - 1, 0.8, 0.99, 0.04, 3.0)
    everyone_is_satisfied = [Model(SMALL, 1.0, 2.0), Model(LARGE, 1.0, 10.0)]
    outcome = run(
        everyone_is_satisfied,
        alpha=0.7,
        requests=250,
        seed=0,
        joining=Joining(Model(NEW, 1.0, 1.0), at=51),
    )
    assert served_by_new(outcome, 51, 80) <= 0.1


def served_by_new(outcome: Run, first: int, last: int) -> float:
    chosen = outcome.served[first - 1 : last]
    return chosen.count(NEW) / len(chosen)


@pytest.mark.parametrize("unseen_labels", [True, False])
def test_the_cheapest_that_holds_is_adopted_within_300_requests(unseen_labels: bool) -> None:
    joining = Joining(Model(NEW, 0.95, 2.0), at=1001)
    adopted = [
        served_by_new(outcome, 1301, 1500) > 0.5
        for outcome in (
            run(
                OLD,
                alpha=0.8,
                requests=1500,
                seed=seed,
                joining=joining,
                unseen_labels=unseen_labels,
            )
            for seed in range(5)
        )
    ]
    assert sum(adopted) >= 4


def test_one_that_holds_nothing_stays_within_the_bound_and_the_promise_is_kept() -> None:
    joining = Joining(Model(NEW, 0.1, 0.1), at=501)
    for seed in range(3):
        outcome = run(
            OLD, alpha=0.8, requests=1500, seed=seed, joining=joining, unseen_labels=False
        )
        assert served_by_new(outcome, 501, 1500) <= newcomers.SHARE
        assert outcome.rate >= 0.79


def test_after_fifty_labelled_calls_it_is_no_newcomer() -> None:
    outcome = run(
        OLD, alpha=0.8, requests=2500, seed=0, joining=Joining(Model(NEW, 0.8, 2.0), at=301)
    )
    assert adaptive_of(outcome.engine.state).trials == {}


def test_until_it_is_settled_it_is_tried_by_one_request_in_twenty() -> None:
    outcome = run(
        OLD, alpha=0.8, requests=1300, seed=1, joining=Joining(Model(NEW, 0.8, 2.0), at=301)
    )
    by = [each.reason for each in outcome.decisions[300:]]
    tries = by.count(Reason.UNSEEN_NEWCOMER) + by.count(Reason.NEWCOMER)
    assert 0 < tries <= newcomers.ENOUGH + 1
