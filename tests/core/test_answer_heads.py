"""What an answer shows is learned from labels: it begins at nothing, and noise is not believed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.answer import ANSWER_NUMBERS, Answer, AnswerSurface, read_answer
from litellm_messplus.core.answer_heads import (
    COUNT,
    LIKENESS,
    MARGIN,
    AnswerHeads,
    Turn,
    moved,
)
from litellm_messplus.core.head import Label
from litellm_messplus.core.predictor import Predictor, Seen
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.trust import log_odds, logistic
from tests.support.builders import SMALL, pair

SHORT = ANSWER_NUMBERS.index("characters")
chances = st.floats(0.0, 1.0)


def answer(number: float) -> AnswerSurface:
    found = np.zeros(COUNT, np.float32)
    found[SHORT] = number
    return found


def taught(labels: int, shown: float, seed: int = 0) -> AnswerHeads:
    """Teach heads of two models by answers whose length goes with the label: ``shown`` times the
    label, and noise."""
    heads, draws = AnswerHeads(2), np.random.default_rng(seed)
    for number in range(labels):
        label = float(draws.random() < 0.7)
        read = answer(5.0 + shown * label + draws.standard_normal())
        heads.learn(number % 2, read, 0.85, 0.0, Label(label))
        heads.saw(number % 2, read, 0.0)
    heads.settle()
    return heads


def test_answers_look_as_usual_after_their_models_rate_starts_again() -> None:
    """A false alarm sets a rate too low. If good answers then looked unusually good, the labels
    would be credited to their look, and the rate would stay low."""
    predictor, draws = Predictor((SMALL,), 2), np.random.default_rng(0)
    for number in range(600):
        hard = float(draws.standard_normal())
        prompt, label = Prompt(pair(hard, 0.0)), float(draws.random() < logistic(1.0 - 1.5 * hard))
        seen = answer(5.0 - 2.0 * hard + label + 0.3 * draws.standard_normal())
        predictor.read(SMALL, prompt, seen)
        predictor.learn(SMALL, f"{number}.0", str(number), prompt, Label(label), Seen(seen))

    def shift(number: float) -> float:
        before, after = predictor.shown(SMALL, Prompt(pair(0.0, 0.0)), Seen(answer(number)))
        return log_odds(after) - log_odds(before)

    usual, good = shift(6.0), shift(7.0)
    assert good > usual + 0.2
    predictor.means[0].restart(20.0, 2.0)
    predictor.learn(SMALL, "again.0", "again", Prompt(pair(0.0, 0.0)), Label(0.0))
    assert predictor.rate[0] < 0.3
    assert shift(6.0) == pytest.approx(usual, abs=0.1)
    assert shift(7.0) == pytest.approx(good, abs=0.1)


@given(st.integers(0, 1), st.floats(-100.0, 100.0), st.floats(-4.6, 4.6))
def test_before_any_label_an_answer_shows_nothing(model: int, number: float, odds: float) -> None:
    heads = AnswerHeads(2)
    assert heads.shift(model, answer(number), odds) == 0.0
    heads.saw(model, answer(number), odds)
    heads.settle()
    assert not heads.spread.scores.any()


def test_a_number_that_goes_with_the_labels_is_believed() -> None:
    heads = taught(600, shown=1.5)
    assert heads.trust.of_heads[0] > 0.9
    good, bad = (logistic(0.85 + heads.shift(0, answer(n), 0.0)) for n in (7.0, 4.0))
    assert good > 0.85
    assert bad < 0.5
    assert heads.spread.scores[0, 0] < -0.3 < 0.3 < heads.spread.scores[0, -1]


def test_noise_is_hardly_believed() -> None:
    shares = [taught(1500, shown=0.0, seed=seed).trust.of_heads.sum() for seed in range(5)]
    assert np.mean(shares) < 0.5
    shifts = [
        abs(taught(1500, shown=0.0, seed=seed).shift(0, answer(7.0), 0.0)) for seed in range(5)
    ]
    assert np.mean(shifts) < 0.1


@given(st.floats(-4.6, 4.6), st.floats(0.0, 1.0))
def test_an_unknown_number_shows_and_teaches_nothing(above: float, label: float) -> None:
    heads, unknown = taught(100, shown=1.5), answer(np.nan)
    assert heads.shift(0, unknown, above) == 0.0

    before = (heads.usual.difference(0, answer(3.0), np.zeros(1)), heads.shared.mean.copy())
    heads.saw(0, unknown, above)
    heads.learn(0, unknown, 0.85, above, Label(label))
    heads.revise(0, unknown, above, 0.5)
    heads.settle()
    after = (heads.usual.difference(0, answer(3.0), np.zeros(1)), heads.shared.mean)
    assert [each[..., SHORT].tobytes() for each in after] == [
        each[..., SHORT].tobytes() for each in before
    ]
    assert all(np.isfinite(each).all() for each in heads.spread)


def test_answers_without_a_score_do_not_blur_what_scores_show() -> None:
    def shifts(unscored: int) -> tuple[float, float]:
        heads, draws = AnswerHeads(1), np.random.default_rng(0)
        for _ in range(400):
            label = float(draws.random() < 0.7)
            first = scored(label - 0.5 + draws.normal(0.0, 0.5))
            for each in (first, *[read_answer(Answer("It is 4."))] * unscored):
                heads.learn(0, each, 0.85, 0.0, Label(label))
                heads.saw(0, each, 0.0)
        return heads.shift(0, scored(0.5), 0.0), heads.shift(0, scored(-0.5), 0.0)

    def scored(score: float) -> AnswerSurface:
        return read_answer(Answer("It is 4.", score=score))

    good, bad = shifts(unscored=0)
    assert bad < -1.0 < 0.5 < good
    assert shifts(unscored=4) == pytest.approx((good, bad), abs=0.25)


def test_an_unusual_answer_counts_by_how_unusual_it_is_for_that_model() -> None:
    heads = AnswerHeads(2)
    for number in range(100):
        heads.saw(0, answer(10.0 + number % 2), 0.0)
        heads.saw(1, answer(2.0 + number % 2), 0.0)
    odd, usual = (heads.usual.difference(m, answer(10.5), np.zeros(1))[SHORT] for m in (1, 0))
    assert abs(usual) < 0.2
    assert odd == 3.0


@given(chances, chances, chances, st.floats(0.0, 0.8))
def test_another_models_answer_moves_a_chance_the_way_it_moved_its_own(
    chance: float, first: float, shown: float, likeness: float
) -> None:
    then, mine = float(moved(chance, first, shown, likeness)), min(max(chance, 0.01), 0.99)
    assert 0.01 <= then <= 0.99
    assert (then - mine) * (shown - first) >= -1e-12
    assert float(moved(chance, first, first, likeness)) == mine


@pytest.mark.parametrize(("alike", "expected"), [(0.0, 0.05), (0.6, 0.6)])
def test_likeness_is_learned_for_each_pair(alike: float, expected: float) -> None:
    heads, draws = AnswerHeads(2), np.random.default_rng(0)
    heads.saw(0, answer(1.0), 0.0)
    for _ in range(4000):
        surprise = draws.normal(0.0, 0.5)
        missed = 0.3 + alike * surprise + draws.normal(0.0, 0.3)  # the prompt errs by 0.3
        heads.compare(0, 1, surprise, Label(missed))
    heads.settle()
    assert heads.spread.likeness[0, 1] == pytest.approx(expected, abs=0.06)
    assert heads.spread.likeness[1, 0] == LIKENESS


def test_second_answers_that_disappoint_raise_the_margin() -> None:
    heads = AnswerHeads(2)
    heads.saw(0, answer(1.0), 0.0)
    heads.settle()
    assert heads.spread.margin == pytest.approx(MARGIN)
    for _ in range(300):
        heads.judged(Turn.REPLACED, Label(0.1))
        heads.judged(Turn.SECOND, Label(-0.1))
        heads.judged(Turn.ONLY, Label(5.0))
    heads.settle()
    assert heads.spread.margin == pytest.approx(0.19, abs=0.02)


def test_a_saved_state_continues_bit_for_bit() -> None:
    heads, copy = taught(100, shown=1.0), AnswerHeads(2)
    copy.load(heads.arrays())
    for each in (heads, copy):
        each.learn(1, answer(3.0), 0.1, 0.1, Label(1.0))
        each.revise(1, answer(3.0), 0.1, -0.5)
        each.judged(Turn.SECOND, Label(0.3))
        each.settle()
    found, wanted = copy.arrays(), heads.arrays()
    assert {name: each.tobytes() for name, each in found.items()} == {
        name: each.tobytes() for name, each in wanted.items()
    }


def test_models_come_and_go_and_the_others_stay() -> None:
    heads = taught(200, shown=1.0)
    before = heads.shift(1, answer(3.0), 0.4)
    heads.add()
    assert heads.shift(1, answer(3.0), 0.4) == before
    assert heads.spread.likeness.shape == (3, 3)
    heads.remove(0)
    assert heads.shift(0, answer(3.0), 0.4) == before
    assert heads.spread.scores.shape == (2, 10)
