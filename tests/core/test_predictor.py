"""The predictor of `adaptive`: every label teaches its candidate, exactly and revisably."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core import predictor as module
from litellm_messplus.core.encoder import Conversation, Features
from litellm_messplus.core.head import Label
from litellm_messplus.core.predictor import Predictor
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.rates import rates
from litellm_messplus.core.surface import read_surface
from tests.support.builders import LARGE, MEDIUM, SMALL, pair, point

NAMES = (SMALL, MEDIUM, LARGE)
FEATURES = pair(1.0, -0.5)
READ = Prompt(FEATURES)

names = st.sampled_from(NAMES)
shares = st.floats(0.0, 1.0)
weights = st.floats(0.1, 1.0)
vectors = st.builds(pair, st.floats(-2, 2, width=32), st.floats(-2, 2, width=32))
verdicts = st.builds(Label, shares, weights)
lessons = st.lists(st.tuples(names, vectors, verdicts), max_size=50)

Lesson = tuple[str, Features, Label]
YES, NO = Label(1.0), Label(0.0)


def build() -> Predictor:
    return Predictor(NAMES, 2)


def teach(predictor: Predictor, taken: list[Lesson], prefix: str = "call") -> Predictor:
    for number, (name, features, label) in enumerate(taken):
        predictor.learn(name, f"{prefix}-{number}", f"{prefix}-{number}", Prompt(features), label)
    return predictor


def inside(predictor: Predictor) -> tuple[object, ...]:
    """All that it holds, bit for bit."""
    arrays = {name: array.tobytes() for name, array in predictor.arrays().items()}
    return arrays, predictor.plain(), predictor.rate, predictor.deviation, predictor.optimism


def test_before_the_first_label_it_is_blank_and_prefers_none() -> None:
    predictor = build()
    assert predictor.is_blank
    assert len(set(predictor.satisfaction(READ))) == 1
    predictor.learn(SMALL, "r1.0", "r1", READ, NO)
    assert not predictor.is_blank
    assert predictor.rate[0] < predictor.rate[1] == predictor.rate[2]
    taught = teach(build(), [(SMALL, FEATURES, Label(0.6))] * 200)  # a judge may say 0.6
    assert taught.rate[0] == pytest.approx(0.6, abs=0.02)
    assert np.isfinite(taught.arrays()["losses"]).all()


def test_where_prompts_tell_the_prediction_follows_them() -> None:
    """A label of one model tells what a prompt is to the others; without features the rates are
    predicted."""
    predictor = build()
    for number in range(300):
        side = 1.0 if number % 2 else -1.0
        for place, (name, value) in enumerate(((SMALL, float(side > 0)), (LARGE, 1.0))):
            call = f"r{number}.{place}"
            predictor.learn(name, call, f"r{number}", point(side, 0.0), Label(value))
    good, bad = (predictor.satisfaction(point(side, 0.0)) for side in (1.0, -1.0))
    assert good[0] - bad[0] > 0.5
    assert good[1] - bad[1] > 0.1
    assert abs(good[2] - bad[2]) < 0.1
    assert predictor.satisfaction(Prompt(None))[:2] == predictor.rate[:2]
    assert predictor.rate[0] == pytest.approx(0.5, abs=0.05)


@given(lessons, names, st.sampled_from([0.0, 1.0]))
def test_a_label_moves_its_rate_the_right_way(taken: list[Lesson], name: str, label: float) -> None:
    """And the others' through the pooled prior alone: the same way, and nothing of their own."""
    predictor = teach(build(), taken)
    before, means = list(predictor.rate), predictor.arrays()["means"]
    predictor.learn(name, "another", "another", READ, Label(label))
    sign = 1.0 if label else -1.0
    for old, new in zip(before, predictor.rate, strict=True):
        assert sign * (new - old) >= -1e-12
    taught = predictor.index[name]
    others = [place for place in range(len(NAMES)) if place != taught]
    assert means[others].tobytes() == predictor.arrays()["means"][others].tobytes()


@given(lessons, names, verdicts, verdicts, st.sampled_from([READ, Prompt(None)]))
def test_a_revision_equals_having_learned_the_other_label(
    taken: list[Lesson], name: str, first: Label, second: Label, prompt: Prompt
) -> None:
    second = replace(second, weight=first.weight)
    revised, direct = teach(build(), taken), teach(build(), taken)
    revised.learn(name, "it", "it", prompt, first)
    revised.revise(name, "it", prompt, first, second)
    direct.learn(name, "it", "it", prompt, second)
    for part, array in revised.arrays().items():
        if part == "means" or part.startswith("belief"):
            np.testing.assert_allclose(
                array, direct.arrays()[part], rtol=0, atol=1e-9 if part == "means" else 2e-5
            )
    assert revised.rate == pytest.approx(direct.rate)
    assert revised.deviation == pytest.approx(direct.deviation)
    assert revised.plain() == direct.plain()


@given(lessons, names, verdicts, verdicts, lessons)
def test_a_late_revision_moves_the_mean_by_the_difference_faded_since(
    taken: list[Lesson], name: str, first: Label, second: Label, between: list[Lesson]
) -> None:
    second = replace(second, weight=first.weight)
    predictor = teach(build(), taken)
    predictor.learn(name, "it", "it", READ, first)
    counted = predictor.means[predictor.index[name]]
    marked = counted.faded
    teach(predictor, between, "later")
    expected = second.weight * (second.value - first.value) * math.exp(counted.faded - marked)
    weight, total = counted.weight, counted.total
    predictor.revise(name, "it", READ, first, second)
    assert counted.weight == pytest.approx(weight)
    assert counted.total - total == pytest.approx(expected, abs=1e-9)


def test_a_mean_is_over_all_prompts_whichever_a_model_is_called_on() -> None:
    """One model gets most of the hard prompts, another the easy ones; they are equally good."""
    predictor, random = build(), np.random.default_rng(0)
    for number in range(1500):
        side = random.choice([-1.0, 1.0])
        label = Label(float(random.random() < 0.5 + 0.3 * side))
        is_explored = random.random() < 0.2
        name = (LARGE if side < 0 else SMALL) if not is_explored else random.choice([SMALL, LARGE])
        predictor.learn(str(name), f"r{number}.0", f"r{number}", point(side, 0.0), label)
    small, _, large = predictor.rate
    assert small == pytest.approx(large, abs=0.25)  # 0.5 apart as labelled
    assert large == pytest.approx(0.5, abs=0.1)


def test_the_labels_that_can_be_revised_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REVISABLE", 5)
    predictor = build()
    for number in range(20):
        predictor.learn(SMALL, f"r{number}.0", f"r{number}", Prompt(FEATURES), YES)
    assert predictor.plain()["marked"] == [f"r{number}.0" for number in range(15, 20)]
    before = list(predictor.rate)
    predictor.revise(SMALL, "r3.0", READ, YES, NO)  # too long ago
    assert predictor.rate == before
    predictor.revise(SMALL, "r15.0", READ, YES, NO)
    assert predictor.rate[0] < before[0]


def test_where_prompts_tell_nothing_it_is_the_rate() -> None:
    predictor = build()
    random = np.random.default_rng(0)
    for number in range(600):
        features = pair(*random.uniform(-1, 1, 2))
        label = Label(float(random.random() < 0.6))
        predictor.learn(SMALL, f"r{number}.0", f"r{number}", Prompt(features), label)
    for features in (pair(1, 1), pair(-1, 0.5), pair(0, 0)):
        assert predictor.satisfaction(Prompt(features))[0] == pytest.approx(
            predictor.rate[0], abs=0.08
        )
    assert predictor.rate[0] == pytest.approx(0.6, abs=0.05)


@given(lessons, st.lists(st.tuples(names, verdicts), min_size=1, max_size=9))
def test_without_features_means_learn(taken: list[Lesson], late: list[tuple[str, Label]]) -> None:
    predictor, means = teach(build(), taken), teach(build(), taken).means
    before = {name: array.tobytes() for name, array in predictor.arrays().items()}
    for number, (name, label) in enumerate(late):
        predictor.learn(name, f"late-{number}", f"late-{number}", Prompt(None), label)
        means[predictor.index[name]].add(label.value, label.weight)
    after = {name: array.tobytes() for name, array in predictor.arrays().items()}
    changed = {name for name in after if after[name] != before[name]}
    assert changed <= {"means", "marks", *(name for name in after if name.startswith("recent_"))}
    assert before["recent_numbers"] == after["recent_numbers"]
    assert predictor.rate == rates(means)[0]


# The surface of prompts


def sum_of(terms: int, features: Features | None = None) -> Prompt:
    text = "What is " + " + ".join(str(10 + 7 * place % 90) for place in range(terms)) + "?"
    return Prompt(features, read_surface(Conversation.of_text(text)))


def sums(predictor: Predictor, count: int, seed: int = 0) -> Predictor:
    """The small model fails at long sums, the large one at none; both answer every one."""
    random = np.random.default_rng(seed)
    for number in range(count):
        terms = int(random.integers(1, 41))
        for place, (name, share) in enumerate(((SMALL, float(terms < 24)), (LARGE, 0.9))):
            label = Label(float(random.random() < share))
            predictor.learn(name, f"r{number}.{place}", f"r{number}", sum_of(terms), label)
    return predictor


def test_one_request_is_one_recent_prompt_whichever_answered_it() -> None:
    predictor = sums(build(), 20)
    assert predictor.recent.requests == [f"r{number}" for number in range(20)]


def test_with_surfaces_too_it_goes_on_as_before() -> None:
    predictor, copy = sums(build(), 30), build()
    arrays = {name: array.copy() for name, array in predictor.arrays().items()}
    copy.load(json.loads(json.dumps(predictor.plain())), arrays)
    for each in (predictor, copy):
        sums(each, 10, seed=1)
        each.revise(SMALL, "r3.0", sum_of(9), NO, YES)
    assert inside(copy)[0] == inside(predictor)[0]
    assert copy.satisfaction(sum_of(35)) == predictor.satisfaction(sum_of(35))
