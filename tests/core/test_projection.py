"""Wide features keep their angles, and all rows have length 1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.head import Label
from litellm_messplus.core.predictor import Predictor
from litellm_messplus.core.prompt import WIDEST, Projection, Prompt

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


def drawn(count: int, dimension: int, seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return list(random.normal(size=(count, dimension)).astype(np.float32))


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


@pytest.mark.parametrize(("dimension", "width"), [(1, 1), (256, 256), (257, 256), (768, 256)])
def test_no_more_than_the_bound_come_out(dimension: int, width: int) -> None:
    project = Projection(dimension)
    (features,) = drawn(1, dimension)
    row = project(features)
    assert (project.width, row.shape) == (width, (width,))


@pytest.mark.parametrize("dimension", [2, 768])
@given(data=st.data())
def test_whatever_the_length_it_is_one_or_zero(dimension: int, data: st.DataObject) -> None:
    features = np.zeros(dimension, dtype=np.float32)
    features[:2] = data.draw(st.tuples(finite, finite))
    length = float(np.linalg.norm(Projection(dimension)(features)))
    assert length == pytest.approx(1.0 if features.any() else 0.0)


def test_the_angles_between_wide_features_are_kept() -> None:
    """The deviation of a cosine is that of the theory, 1 / sqrt(256), and not twice that; alike
    prompts stay alike, which is what a head needs."""
    project = Projection(768)
    unlike = drawn(60, 768)
    noise = drawn(60, 768, 1)
    like = [one + np.float32(0.1) * other for one, other in zip(unlike, noise, strict=True)]
    errors = [
        cosine(project(one), project(other)) - cosine(one, other)
        for place, one in enumerate(unlike)
        for other in unlike[:place]
    ]
    assert np.std(errors) == pytest.approx(1.0 / np.sqrt(WIDEST), rel=0.15)
    assert abs(np.mean(errors)) < 0.02
    for one, other in zip(unlike, like, strict=True):
        assert cosine(project(one), project(other)) > 0.98


def test_it_is_the_same_for_ever() -> None:
    """Snapshots hold what was learned behind it. Another one needs another snapshot format."""
    features = np.arange(768, dtype=np.float32)
    first = Projection(768)(features)
    assert first.tobytes() == Projection(768)(features).tobytes()
    signs = np.array([Projection(300)(row) for row in np.eye(300, dtype=np.float32)]) > 0
    assert [row.tolist() for row in signs[:3, :4]] == [
        [False, True, False, True],
        [True, False, True, False],
        [False, False, True, True],
    ]
    assert 0.48 < signs.mean() < 0.52


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_behind_it_the_predictor_learns_alike_at_any_scale_and_width(scale: float) -> None:
    """Two kinds of prompts of 768 features, whose lengths an encoder chose: after 150 labels each
    is known, though their features are noisy."""
    predictor = Predictor(("only",), 768)
    good, bad = drawn(2, 768)
    for number, noise in enumerate(drawn(300, 768, 1)):
        kind = good if number % 2 else bad
        features = (kind + noise) * np.float32(scale)
        predictor.learn(
            "only", str(number), str(number), Prompt(features), Label(float(number % 2))
        )
    assert predictor.satisfaction(Prompt(good * np.float32(scale)))[0] > 0.75
    assert predictor.satisfaction(Prompt(bad * np.float32(scale)))[0] < 0.25


def test_a_row_is_kept_only_of_features_that_cannot_change_and_cannot_change_itself() -> None:
    project = Projection(2)
    features = np.array([3.0, -4.0], dtype=np.float32)
    assert project(features).tolist() == pytest.approx([0.6, -0.8])
    features[:] = [0.0, 2.0]
    assert project(features).tolist() == [0.0, 1.0]
    features.flags.writeable = False
    assert project(features) is project(features)
    with pytest.raises(ValueError, match="read-only"):
        project(features)[0] = 1.0


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (np.zeros((1,)), "not of dimension 768"),
        (np.zeros((2, 768)), "not of dimension 768"),
        (np.full(768, np.nan), "finite"),
        (np.full(768, -np.inf), "finite"),
    ],
)
def test_what_is_no_row_of_numbers_is_refused(features: np.ndarray, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Projection(768)(features.astype(np.float32))
