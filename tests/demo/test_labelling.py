"""Where the demo's labels come from, and which simulated users say something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from litellm_messplus.demo.session import BIAS, SATISFIED, Labelling, SimulatedCrowd

USERS = 20_000
SHARES = st.floats(0.001, 1.0)


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


def test_only_checks_send_the_answer_along() -> None:
    modes = ("all", "checks", "judge", "judge:largest", "feedback:0.5")

    assert [mode for mode in modes if Labelling.parse(mode, 0).sends_reference] == ["checks"]


def test_checks_and_judges_get_no_feedback() -> None:
    assert all(Labelling.parse(mode, 0).crowd is None for mode in ("checks", "judge"))


def test_all_means_feedback_on_every_answer() -> None:
    labelling = Labelling.parse("all", 0)

    assert labelling.labels_explorations
    assert labelling.crowd is not None
    assert all(labelling.crowd.answers(number, number % 2 == 0) for number in range(500))


@pytest.mark.parametrize(
    "given", ["", "everything", "all:1", "judge:small", "feedback", "feedback:", "feedback:0"]
)
def test_other_modes_are_refused(given: str) -> None:
    with pytest.raises(ValueError, match="feedback:SHARE"):
        Labelling.parse(given, 0)


@pytest.mark.parametrize("share", ["1.01", "-0.1", "nan", "inf", "some"])
def test_a_share_is_a_share(share: str) -> None:
    with pytest.raises(ValueError, match="above 0 and up to 1"):
        Labelling.parse(f"feedback:{share}", 0)


def test_the_command_says_what_is_allowed() -> None:
    result = CliRunner().invoke(app, ["demo", "--labels", "nobody"])

    assert result.exit_code == 2
    assert "nobody" in result.output


@given(SHARES)
def test_the_share_that_answers_is_as_asked_for(share: float) -> None:
    satisfied, unsatisfied = SimulatedCrowd(share).answer_shares()

    assert 0.0 < satisfied <= unsatisfied + 1e-12
    assert unsatisfied <= 1.0
    assert SATISFIED * satisfied + (1 - SATISFIED) * unsatisfied == pytest.approx(share)


@given(st.floats(0.001, 0.46))
def test_unsatisfied_users_answer_three_times_as_often(share: float) -> None:
    satisfied, unsatisfied = SimulatedCrowd(share).answer_shares()

    assert unsatisfied == pytest.approx(BIAS * satisfied)


def test_a_fifth_of_the_users_by_hand() -> None:
    satisfied, unsatisfied = SimulatedCrowd(0.2).answer_shares()

    assert (satisfied, unsatisfied) == pytest.approx((1 / 7, 3 / 7))


def test_users_answer_as_often_as_stated() -> None:
    crowd = SimulatedCrowd(0.2, seed=1)
    shares = crowd.answer_shares()

    for satisfied, share in zip((True, False), shares, strict=True):
        answered = sum(crowd.answers(number, satisfied) for number in range(USERS)) / USERS
        assert answered == pytest.approx(share, abs=0.015)


def test_the_seed_decides_who_answers() -> None:
    def who(seed: int) -> list[bool]:
        crowd = SimulatedCrowd(0.2, seed)
        return [crowd.answers(number, True) for number in range(200)]

    assert who(3) == who(3)
    assert who(3) != who(4)
