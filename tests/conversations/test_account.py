"""What is expected of a conversation as it goes on, and who earns the verdict on it."""

import pytest

from litellm_messplus.state.credits import CREDITED, Course, Credits, shares_of


def test_each_earns_its_share_of_the_turns_and_all_of_it_is_one() -> None:
    assert shares_of(["small", "small", "large", "small"]) == (("small", 0.75), ("large", 0.25))
    assert shares_of(["small"]) == (("small", 1.0),)
    assert shares_of([]) == ()


def test_somebody_outside_the_zoo_earns_a_share_that_nobody_learns() -> None:
    assert shares_of(["small", None]) == (("small", 0.5),)


def test_while_the_same_model_goes_on_nothing_else_is_expected() -> None:
    course = Course.begun(-0.1)
    for _ in range(50):
        course = course.went_on(None)

    assert (course.turns, course.expected) == (51, -0.1)


def test_who_takes_over_is_expected_by_its_share_of_the_turns() -> None:
    """Two turns by one that is 0.4 short, then two by one that is 0.1 over."""
    course = Course.begun(0.4).went_on(None).went_on(-0.1).went_on(None)

    assert course.expected == pytest.approx((2 * 0.4 + 2 * -0.1) / 4)


def test_only_the_newest_credits_are_remembered() -> None:
    credits = Credits()
    for number in range(CREDITED + 10):
        credits.keep(f"c{number}", (("small", 1.0),))
    credits.keep("c11", (("large", 1.0),))
    credits.keep("last", (("small", 1.0),))

    assert len(credits) == CREDITED
    assert credits.of("c10") is None
    assert credits.of("c11") == {"large": 1.0}


def test_credits_come_back_as_they_were() -> None:
    kept, loaded = Credits(), Credits()
    kept.keep("c1", (("small", 0.75), ("large", 0.25)))
    kept.keep("c2", (("small", 1.0),))
    loaded.load(kept.plain())

    assert loaded.plain() == kept.plain()
    assert loaded.of("c1") == {"small": 0.75, "large": 0.25}
