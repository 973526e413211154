"""What is expected of a conversation as it goes on, and who earns the verdict on it."""

import pytest

from litellm_messplus.state.credits import CREDITED, Course, Credits, Shares, shares_of


@pytest.mark.parametrize(
    ("served", "shares"),
    [
        (["small", "small", "large", "small"], (("small", 0.75), ("large", 0.25))),
        (["small"], (("small", 1.0),)),
        ([], ()),
        (["small", None], (("small", 0.5),)),  # somebody outside the zoo learns nothing
    ],
)
def test_each_earns_its_share_of_the_turns(served: list[str | None], shares: Shares) -> None:
    assert shares_of(served) == shares


def test_who_takes_over_is_expected_by_its_share_of_the_turns() -> None:
    """Two turns by one that is 0.4 short, then two by one that is 0.1 over."""
    course = Course.begun(0.4).went_on(None)
    assert (course.turns, course.expected) == (2, 0.4)
    course = course.went_on(-0.1).went_on(None)
    assert course.expected == pytest.approx((2 * 0.4 + 2 * -0.1) / 4)


def test_only_the_newest_credits_are_remembered_and_come_back_as_they_were() -> None:
    kept, loaded = Credits(), Credits()
    for number in range(CREDITED + 10):
        kept.keep(f"c{number}", (("small", 1.0),))
    kept.keep("c11", (("small", 0.75), ("large", 0.25)))
    kept.keep("last", (("small", 1.0),))
    assert len(kept._shares) == CREDITED
    loaded.load(kept.plain())
    assert loaded.plain() == kept.plain()
    assert (loaded.of("c10"), loaded.of("c11")) == (None, {"small": 0.75, "large": 0.25})
