"""A model that comes while a zoo serves is brought in within a bound, and adopted where it is the
cheapest that holds alpha."""

from dataclasses import replace
from typing import Any

import pytest

from litellm_messplus.core import trying as newcomers
from litellm_messplus.core.decision import Decision, Estimate, Reason
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
    offered = situation((SMALL, 1.0, 0.8), (LARGE, 5.0, 0.9), queue=queue, exploration_draw=draw)
    offered = replace(offered, newcomers=ESTIMATES, is_labelled=is_labelled)
    return newcomers.tried(decision(**changed), offered, unseen_labelled)


@pytest.mark.parametrize(
    ("given", "chosen", "explored", "reason", "propensity"),
    [
        ({"draw": 0.5}, SMALL, (), Reason.AHEAD, 0.95),
        ({"draw": 0.96}, SMALL, (NEW,), Reason.UNSEEN_NEWCOMER, 0.95),
        ({"draw": 0.94}, SMALL, (), Reason.AHEAD, 0.95),
        ({"draw": 0.96, "unseen_labelled": 0.0}, NEW, (), Reason.NEWCOMER, newcomers.SHARE),
        ({"draw": 0.5, "unseen_labelled": 0.0}, SMALL, (), Reason.AHEAD, 0.95 - newcomers.SHARE),
        ({"draw": 0.01, "unseen_labelled": 0.0, "propensity": 0.05}, SMALL, (), Reason.AHEAD, 0.05),
        ({"draw": 0.96, "queue": 0.5}, SMALL, (NEW,), Reason.UNSEEN_NEWCOMER, 0.95),
        ({"draw": 0.96, "queue": 1.5}, SMALL, (), Reason.AHEAD, 0.95),
        ({"draw": 0.96, "queue": 1.5, "unseen_labelled": 0.0}, SMALL, (), Reason.AHEAD, 0.95),
        (
            {"draw": 0.96, "queue": 5.0, "is_within_reach": False},
            *(SMALL, (NEW,), Reason.UNSEEN_NEWCOMER, 0.95),
        ),
        ({"draw": 0.96, "is_labelled": False}, SMALL, (), Reason.AHEAD, 0.95),
    ],
    ids=[
        *(
            "most requests",
            "one in twenty",
            "and no more",
            "no one labels unseen answers",
            "most of those",
        ),
        *("a probe of another", "little is owed", "a debt", "a debt and no labels"),
        *("a debt that no other repays", "no labels to come"),
    ],
)
def test_the_cheapest_newcomer_is_tried(
    given: dict[str, Any], chosen: str, explored: tuple[str, ...], reason: Reason, propensity: float
) -> None:
    found = tried(**given)
    assert (found.chosen, found.explored, found.reason) == (chosen, explored, reason)
    assert found.propensity == pytest.approx(propensity)
    assert found.expected_satisfaction == (0.7 if chosen == NEW else 0.8)
    assert found.ranking[-1] == "later"


@pytest.mark.parametrize(
    ("rate", "deviation", "is_settled"),
    [(0.95, 0.05, True), (0.85, 0.05, False), (0.7, 0.05, False), (0.4, 0.05, True)],
)
def test_a_newcomer_settles_by_labels(rate: float, deviation: float, is_settled: bool) -> None:
    assert newcomers.is_settled(9, 0.8, rate, deviation, 3.0) is is_settled


def test_without_labels_of_its_own_nothing_is_known_by_those_of_the_others() -> None:
    assert not newcomers.is_settled(newcomers.FEWEST - 1, 0.8, 0.99, 0.04, 3.0)
    everyone = [Model(SMALL, 1.0, 2.0), Model(LARGE, 1.0, 10.0)]
    new = Joining(Model(NEW, 1.0, 1.0), at=51)
    outcome = run(everyone, alpha=0.7, requests=250, seed=0, joining=new)
    assert served_by_new(outcome, 51, 80) <= 0.1


def joined(rate: float, cost: float, *, at: int, requests: int = 1500, **given: Any) -> Run:
    joining = Joining(Model(NEW, rate, cost), at=at)
    return run(OLD, alpha=0.8, requests=requests, joining=joining, **given)


def served_by_new(outcome: Run, first: int, last: int) -> float:
    chosen = outcome.served[first - 1 : last]
    return chosen.count(NEW) / len(chosen)


@pytest.mark.parametrize("unseen_labels", [True, False])
def test_the_cheapest_that_holds_is_adopted_within_300_requests(unseen_labels: bool) -> None:
    adopted = [
        served_by_new(
            joined(0.95, 2.0, at=1001, seed=seed, unseen_labels=unseen_labels), 1301, 1500
        )
        for seed in range(10)
    ]
    assert sum(share > 0.5 for share in adopted) >= 6


def test_one_that_holds_nothing_stays_within_the_bound_and_the_promise_is_kept() -> None:
    for seed in range(3):
        outcome = joined(0.1, 0.1, at=501, seed=seed, unseen_labels=False)
        assert served_by_new(outcome, 501, 1500) <= newcomers.SHARE
        assert outcome.rate() >= 0.79


def test_it_is_tried_by_one_request_in_twenty_until_fifty_of_its_calls_are_labelled() -> None:
    outcome = joined(0.8, 2.0, at=301, seed=1, requests=2500)
    by = [each.reason for each in outcome.decisions[300:]]
    tries = by.count(Reason.UNSEEN_NEWCOMER) + by.count(Reason.NEWCOMER)
    assert 0 < tries <= newcomers.ENOUGH + 1
    assert adaptive_of(outcome.engine.state).trials == {}
