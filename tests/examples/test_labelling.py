"""Where the demo's labels come from, and which simulated users say something."""

import pytest

from examples.tiny_zoo.demo.session import Labelling, SimulatedCrowd

USERS = 20_000


@pytest.mark.parametrize(
    ("mode", "zoo"),
    [
        ("all", "tiny-zoo"),
        ("checks", "tiny-zoo-checked"),
        ("judge", "tiny-zoo-judged"),
        ("auto", "tiny-zoo-auto"),
        ("judge:largest", "tiny-zoo-judged-by-largest"),
        ("feedback:0.2", "tiny-zoo-crowd"),
    ],
)
def test_every_mode_has_a_zoo_of_its_own(mode: str, zoo: str) -> None:
    assert (Labelling.parse(mode, 0).mode, Labelling.parse(mode, 0).zoo) == (mode, zoo)


@pytest.mark.parametrize(
    "given", ["", "everything", "all:1", "judge:small", "feedback", "feedback:", "feedback:0"]
)
def test_other_modes_are_refused(given: str) -> None:
    with pytest.raises(ValueError, match="feedback:SHARE"):
        Labelling.parse(given, 0)


def test_a_fifth_of_the_users_by_hand() -> None:
    satisfied, unsatisfied = SimulatedCrowd(0.2).answer_shares()

    assert (satisfied, unsatisfied) == pytest.approx((1 / 7, 3 / 7))


def test_users_answer_as_often_as_stated() -> None:
    crowd = SimulatedCrowd(0.2, seed=1)
    shares = crowd.answer_shares()

    for satisfied, share in zip((True, False), shares, strict=True):
        answered = sum(crowd.answers(number, satisfied) for number in range(USERS)) / USERS
        assert answered == pytest.approx(share, abs=0.015)
