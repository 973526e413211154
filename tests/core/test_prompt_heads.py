"""What the prompt adds to the means: learned where it tells, and not paid for where it does not."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.head import Label
from litellm_messplus.core.prompt import Average, Prompt
from litellm_messplus.core.prompt_heads import PromptHeads
from litellm_messplus.core.surface import read_surface
from litellm_messplus.core.trust import Trust, log_odds, logistic
from tests.support.builders import pair, point

SHARE = 0.6
"""Of the satisfied on average, which the means are taken to know."""
BASE = log_odds(SHARE)


def sum_of(terms: int, features: np.ndarray | None = None) -> Prompt:
    text = "What is " + " + ".join(str(10 + 7 * place % 90) for place in range(terms)) + "?"
    return Prompt(features, read_surface(Conversation.of_text(text)))


EASY, HARD = sum_of(3), sum_of(35)

Truth = Callable[[int, int], float]
"""The probability that a model satisfies a sum of so many terms."""


def taught(truth: Truth, labels: int, seed: int = 0) -> PromptHeads:
    return stream(truth, labels, seed)[0]


def stream(truth: Truth, labels: int, seed: int = 0) -> tuple[PromptHeads, float, list[float]]:
    """Sums of 1 to 40 terms, each answered by one of the models in turn: the heads, by how many
    nats they predicted worse than the means, and the evidence after each label."""
    heads, random = PromptHeads(2, 2), np.random.default_rng(seed)
    lost, evidence = 0.0, []
    for number in range(labels):
        terms, model = int(random.integers(1, 41)), number % 2
        prompt = sum_of(terms)
        satisfied = float(random.random() < truth(model, terms))
        odds = BASE + float(heads.shifts(prompt)[model])
        lost += log_loss(odds, satisfied) - log_loss(BASE, satisfied)
        heads.learn(model, prompt, BASE, Label(satisfied))
        evidence.append(heads.evidence)
    return heads, lost, evidence


def log_loss(odds: float, satisfied: float) -> float:
    guess = logistic(odds)
    return -math.log(guess if satisfied else 1.0 - guess)


def short_only(model: int, terms: int) -> float:
    """The model that is called fails at long sums alone."""
    return float(terms < 24)


def alike(model: int, terms: int) -> float:
    """The prompt tells nothing."""
    return SHARE


def small_fails(model: int, terms: int) -> float:
    """The first model fails at long sums, the second at none."""
    return float(terms < 24) if model == 0 else 0.9


def bits(heads: PromptHeads) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in heads.arrays().items()}


def copied(heads: PromptHeads) -> PromptHeads:
    copy = PromptHeads(heads.models, 2)
    copy.load({name: array.copy() for name, array in heads.arrays().items()})
    return copy


def test_before_the_first_label_no_prompt_adds_anything() -> None:
    heads = PromptHeads(3, 2)
    for prompt in (EASY, HARD, point(1, 0), sum_of(9, pair(0.5, -2.0)), Prompt(None)):
        assert heads.shifts(prompt).tolist() == [0.0, 0.0, 0.0]
    assert heads.evidence <= 0.0


def test_where_the_surface_decides_it_is_learned_and_large_odds_are_reached() -> None:
    heads, lost, evidence = stream(short_only, 400)
    easy, hard = heads.shifts(EASY), heads.shifts(HARD)
    assert (easy > 1.5).all()
    assert (hard < -1.5).all()
    assert (easy - hard > 3.0).all()
    assert heads.evidence > 50.0
    assert lost < -80.0
    assert np.mean(np.diff(evidence[50:]) > 0.0) > 0.9


def test_what_one_model_shows_of_a_prompt_is_expected_of_one_that_has_no_label_yet() -> None:
    heads = PromptHeads(2, 2)
    for number in range(300):
        terms = 1 + number * 7 % 40
        heads.learn(0, sum_of(terms), BASE, Label(float(terms < 24)))
    assert heads.shifts(EASY)[1] - heads.shifts(HARD)[1] > 1.0


def test_a_model_that_alone_fails_at_long_sums_is_distinguished_from_one_that_does_not() -> None:
    heads = taught(small_fails, 1200)
    easy, hard = heads.shifts(EASY), heads.shifts(HARD)
    assert easy[0] - hard[0] > 3.0
    assert easy[0] - hard[0] > 2.0 * abs(easy[1] - hard[1])


@pytest.mark.parametrize("seed", range(4))
def test_where_prompts_tell_nothing_reading_costs_hardly_more_than_not_reading(seed: int) -> None:
    """Of some 1000 nats; and the prediction stays near the mean."""
    heads, lost, evidence = stream(alike, 1500, seed=seed)
    assert lost < 4.0
    assert max(evidence) < 5.0
    for prompt in (EASY, HARD):
        assert abs(heads.shifts(prompt)).max() < 0.3


def test_features_tell_what_the_surface_does_not() -> None:
    heads = PromptHeads(1, 2)
    for number in range(400):
        side = 1.0 if number % 2 else -1.0
        prompt = sum_of(1 + number * 7 % 40, pair(side, 0.0))
        heads.learn(0, prompt, 0.0, Label(float(side > 0)))
    good, bad = (heads.shifts(sum_of(20, pair(side, 0.0)))[0] for side in (1.0, -1.0))
    assert good - bad > 2.0
    assert heads.evidence > 20.0


def test_on_the_average_prompt_nothing_is_added() -> None:
    """What is common to all prompts is the running means'."""
    heads = taught(short_only, 300)
    rows = heads.average.difference(Prompt(None))
    shifts = heads.combined.of_many(rows.surface[None], rows.words[None])
    assert shifts.tolist() == [[0.0, 0.0]]
    assert heads.shifts(Prompt(None)).tolist() == [0.0, 0.0]


def test_several_prompts_at_once_are_as_each_alone() -> None:
    heads = taught(small_fails, 60)
    prompts = [EASY, HARD, sum_of(12, pair(1.0, 0.5)), point(-1.0, 0.0)]
    rows = [heads.average.difference(prompt) for prompt in prompts]
    surface, words = (np.array(column) for column in zip(*rows, strict=True))
    alone = np.array([heads.shifts(prompt) for prompt in prompts])
    np.testing.assert_allclose(heads.combined.of_many(surface, words), alone, atol=1e-5)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_second_verdict_at_once_is_as_if_it_had_been_the_first(value: float) -> None:
    """But for what the experts were charged."""
    revised = taught(small_fails, 200)
    direct, kept = copied(revised), copied(revised)
    for heads, first in ((revised, 1.0 - value), (direct, value), (kept, 1.0 - value)):
        heads.learn(0, HARD, BASE, Label(first))
    revised.revise(0, HARD, value - (1.0 - value))
    for name, array in direct.arrays().items():
        if name.startswith("belief"):
            np.testing.assert_allclose(revised.arrays()[name], array, atol=1e-3, err_msg=name)
    assert revised.trust.losses.tobytes() == kept.trust.losses.tobytes()


def test_a_late_second_verdict_leaves_the_heads_nearer_to_those_that_had_the_right_one() -> None:
    """Twenty labels were wrong at first, and are revised after a hundred others."""
    wrong, right = (taught(small_fails, 100) for _ in range(2))
    for heads, first in ((wrong, 1.0), (right, 0.0)):
        for _ in range(20):
            heads.learn(0, HARD, BASE, Label(first))
        for number in range(100):
            terms = 1 + number * 7 % 40
            heads.learn(number % 2, sum_of(terms), BASE, Label(float(terms < 24)))
    revised = copied(wrong)
    for _ in range(20):
        revised.revise(0, HARD, -1.0)

    def away(heads: PromptHeads) -> float:
        """By the means of the beliefs, all trusted alike."""
        return sum(
            float(np.square(one.mean - other.mean).sum())
            for mine, best in zip(heads.readers, right.readers, strict=True)
            for one, other in zip(mine.beliefs, best.beliefs, strict=True)
        )

    assert away(revised) < away(wrong) / 2


@given(st.floats(-8.0, 8.0), st.floats(0.0, 1.0), st.floats(0.05, 3.0))
def test_whatever_the_label_all_stays_finite(base: float, value: float, weight: float) -> None:
    heads = PromptHeads(2, 2)
    for number in range(12):
        heads.learn(number % 2, (EASY, HARD)[number % 2], base, Label(value, weight))
    assert all(np.isfinite(array).all() for array in heads.arrays().values())
    assert np.isfinite(heads.shifts(HARD)).all()


@pytest.mark.parametrize("labels", [0, 1, 7, 61])
def test_what_was_saved_goes_on_to_the_bit(labels: int) -> None:
    heads = taught(small_fails, labels)
    loaded = copied(heads)
    assert bits(loaded) == bits(heads)
    assert loaded.shifts(HARD).tobytes() == heads.shifts(HARD).tobytes()
    for number in range(20):
        for each in (heads, loaded):
            each.learn(number % 2, sum_of(number, pair(number, 1.0)), BASE, Label(number % 3 / 2))
            each.revise(number % 2, EASY, 0.5)
    assert bits(loaded) == bits(heads)
    assert loaded.shifts(HARD).tobytes() == heads.shifts(HARD).tobytes()


def charged(trust: Trust, times: int, label: float, *heads: int) -> Trust:
    """The heads that are named say 2, and the label comes so many times."""
    added = np.zeros(trust.scales.shape[1])
    added[list(heads) or slice(None)] = 2.0
    for _ in range(times):
        trust.charge(0.0, added, Label(label))
    return trust


def untried() -> Trust:
    return PromptHeads(1, 8).trust


def test_the_experts_are_charged_the_better_is_trusted_and_old_losses_are_forgotten() -> None:
    cautious = untried()
    assert cautious.evidence <= 0.0
    right = charged(untried(), 30, 1.0, 0)  # the first reader's shared head is right, each time
    assert right.evidence > 5.0
    assert right.of_heads[0] > max(cautious.of_heads[0], 0.8)
    assert right.of_heads[2] < cautious.of_heads[2]
    wrong = charged(untried(), 5000, 0.0)
    assert wrong.evidence == 0.0
    assert wrong.of_heads.max() < 0.01
    assert wrong.losses.max() > 100.0
    assert charged(wrong, 5000, 1.0).of_heads.min() > 0.4


def test_the_average_is_of_all_that_could_be_read() -> None:
    average = Average(2)
    for prompt in (EASY, sum_of(3, pair(3.0, 4.0)), point(0.0, 2.0), Prompt(None)):
        average.count(prompt)
    assert EASY.ramps is not None
    assert average.counts.tolist() == [2, 2]
    assert average.surface == pytest.approx(EASY.ramps)
    assert average.words == pytest.approx([0.3, 0.9])
    nothing = average.difference(Prompt(None))
    assert not nothing.surface.any()
    assert not nothing.words.any()
    assert average.difference(point(0.0, 1.0)).words == pytest.approx([-0.3, 0.1])
