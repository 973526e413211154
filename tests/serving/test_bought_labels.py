"""What a draw buys: labels that stand for many requests, and unseen calls that are labelled."""

from dataclasses import replace

import pytest
from hypothesis import given as holds_for
from hypothesis import strategies as st

from litellm_messplus.core.account import MOST, Account
from litellm_messplus.core.adaptive import decide
from litellm_messplus.core.trying import Knowledge
from litellm_messplus.core.verdict import Given
from litellm_messplus.runtime.vocabulary import LabelKind
from tests.support.builders import (
    LARGE,
    MEDIUM,
    SMALL,
    adaptive_of,
    build_engine,
    decided,
    labelled,
    situation,
)

ALPHA = 0.6


def bought(value: float, probability: float) -> Given:
    return Given(LabelKind.JUDGE, "judge", value, 1.0, probability)


def test_where_all_labels_are_of_one_draw_each_counts_once() -> None:
    drawn, plain = Account(), Account()
    for number in range(30):
        shortfall = ALPHA - number % 2
        drawn.answered(f"r{number}", shortfall, 20.0)
        plain.answered(f"r{number}", shortfall)

    assert drawn.queue == pytest.approx(plain.queue)


def test_a_label_of_a_rare_draw_counts_more_than_one_of_a_common_draw() -> None:
    """Half of the labels were sure to be bought, half stand for three requests each."""
    account = Account()
    for number in range(200):
        account.answered(f"r{number}", 0.0, 1.0 if number % 2 else 3.0)
    before = account.queue
    account.answered("common", 0.3, 1.0)
    common = account.queue - before
    account.answered("rare", 0.3, 3.0)

    assert account.queue - before - common == pytest.approx(3.0 * common, rel=0.05)


def test_one_label_of_the_rarest_draw_does_not_swing_the_queue() -> None:
    account = Account()
    for number in range(500):
        account.answered(f"r{number}", 0.0, 1.0)
    account.answered("rare", 0.5, 1000.0)

    assert account.queue <= 0.5 * MOST


def test_the_fold_weighs_a_label_by_its_draw() -> None:
    engine = build_engine()
    for number in range(100):
        engine.apply(labelled(0.6, request_id=f"r{number}", given=bought(0.6, 0.5)))
    engine.apply(labelled(0.0, request_id="common", given=bought(0.0, 0.5)))
    once = engine.state.policy.queue("default")
    engine.apply(labelled(0.0, request_id="rare", given=bought(0.0, 0.25)))

    assert engine.state.policy.queue("default") - once == pytest.approx(2.0 * once, rel=0.05)


def test_a_users_word_in_the_place_of_a_bought_label_moves_the_queue_by_the_difference() -> None:
    engine = build_engine()
    engine.apply(labelled(0.0, given=bought(0.0, 0.5)))
    engine.apply(replace(labelled(0.6), earlier=(bought(0.0, 0.5),)))

    assert engine.state.policy.queue("default") == pytest.approx(0.0)


def test_unseen_calls_that_are_bought_say_nothing_of_the_others() -> None:
    engine = build_engine()
    for number in range(50):
        engine.apply(decided(request_id=f"b{number}", calls=3))
        engine.apply(replace(decided(request_id=f"r{number}", calls=3), is_bought=True))
        said = labelled(1.0, request_id=f"r{number}", call_id=f"r{number}.1", is_served=False)
        engine.apply(replace(said, is_bought=True))
    unseen = adaptive_of(engine.state).unseen

    assert unseen.labelled == 0.0
    assert unseen.made == pytest.approx(100.0, rel=0.05)


ESTIMATES = ((SMALL, 1.0, 0.55), (MEDIUM, 3.0, 0.6), (LARGE, 50.0, 0.9))
DOUBTFUL = Knowledge(
    rate=(0.55, 0.55, 0.9),
    deviation=(0.05, 0.05, 0.02),
    optimism=(0.5, 0.5, 0.5),
    is_blank=False,
    unseen_labelled=0.02,
)
"""An expensive model serves, and nobody labelled what the cheaper ones said unseen."""


@pytest.mark.parametrize(("is_labelled", "shadows"), [(True, True), (False, False), (None, False)])
def test_cheaper_models_answer_where_labelled(is_labelled: bool | None, shadows: bool) -> None:
    told = replace(situation(*ESTIMATES, queue=5.0), is_labelled=is_labelled)

    assert bool(decide(told, DOUBTFUL, 1.0).explored) == shadows


@holds_for(st.floats(0.0, 1.0, exclude_max=True), st.floats(0.0, 1.0, exclude_max=True))
def test_no_call_is_made_unseen_where_no_label_will_come(draw: float, choice: float) -> None:
    told = situation(*ESTIMATES, queue=5.0, exploration_draw=draw, choice_draw=choice)
    known = replace(DOUBTFUL, unseen_labelled=1.0)

    assert decide(replace(told, is_labelled=False), known, 1.0).explored == ()
