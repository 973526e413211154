"""Every head keeps to the protocol of `core/head.py`."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from litellm_messplus.core.encoder import Features
from litellm_messplus.core.head import Arrays, Head, Label, LinearHeads
from litellm_messplus.core.neural_heads import NeuralHeads
from tests.support.adaptive_head import AdaptiveHead

MakeHead = Callable[[Sequence[str], int], Head]
"""A constructor, from candidates and a dimension, of an untrained head; alike each time."""


def linear(candidates: Sequence[str], dimension: int) -> LinearHeads:
    return LinearHeads(candidates, dimension, learning_rate=0.06, momentum=0.9, weight_decay=0.01)


def neural(candidates: Sequence[str], dimension: int) -> NeuralHeads:
    return NeuralHeads(candidates, dimension, learning_rate=0.06, momentum=0.9, weight_decay=0.01)


HEADS: dict[str, MakeHead] = {"linear": linear, "neural": neural, "adaptive": AdaptiveHead}
CANDIDATES = ("small-1.0", "vendor/medium", "ünï large")
DIMENSION = 16
LESSONS = 60
REPEATED = 50
"""Labels of one prompt and candidate that any head must follow, with dropout or without."""
HUGE = float(np.finfo(np.float32).max)

SOUND = {
    "zeros": np.zeros(DIMENSION, dtype=np.float32),
    "huge numbers": np.full(DIMENSION, HUGE, dtype=np.float32),
    "huge numbers of both signs": np.resize(np.array([HUGE, -HUGE], np.float32), DIMENSION),
    "tiny numbers": np.full(DIMENSION, 1e-45, dtype=np.float32),
}
UNSOUND = {
    "not a number": np.full(DIMENSION, np.nan, dtype=np.float32),
    "one infinity": np.append(np.zeros(DIMENSION - 1), np.inf).astype(np.float32),
    "too few": np.zeros(DIMENSION - 1, dtype=np.float32),
    "too many": np.zeros(DIMENSION + 1, dtype=np.float32),
    "two rows": np.zeros((2, DIMENSION), dtype=np.float32),
}


@pytest.fixture(params=[*HEADS.values()], ids=[*HEADS])
def make_head(request: pytest.FixtureRequest) -> MakeHead:
    found: MakeHead = request.param
    return found


def test_has_its_members(make_head: MakeHead) -> None:
    """Check for the candidates in the order given, and the dimension."""
    head = make_head(CANDIDATES, DIMENSION)
    assert head.candidates == CANDIDATES, f"candidates must be those given, are {head.candidates}"
    assert head.dimension == DIMENSION, f"dimension must be {DIMENSION}, is {head.dimension}"


def test_gives_a_probability_for_each_candidate(make_head: MakeHead) -> None:
    """Check for one probability per named candidate, in order, each a float in [0, 1]; before and
    after learning."""
    for lessons in (0, LESSONS):
        head = _taught(make_head, lessons)
        prompt = _prompt(7)
        predicted = _probabilities(head, prompt, CANDIDATES)
        for named in (CANDIDATES[::-1], CANDIDATES[1:], CANDIDATES[:1], ()):
            expected = [predicted[CANDIDATES.index(name)] for name in named]
            given = _probabilities(head, prompt, named)
            assert np.allclose(given, expected, atol=1e-6), f"order must be that of {named}"


def test_refuses_unknown_candidates(make_head: MakeHead) -> None:
    """Check that a candidate without a head raises KeyError, and changes nothing."""
    head = _taught(make_head)
    with _refused(head, KeyError, "predicting for an unknown candidate"):
        head.predict(_prompt(1), ["gone"])
    with _refused(head, KeyError, "learning for an unknown candidate"):
        head.learn(_prompt(1), {"gone": Label(1.0)})
    with _refused(head, KeyError, "revising for an unknown candidate"):
        head.revise(_prompt(1), "gone", Label(1.0), Label(0.0))


def test_learns_from_one_label(make_head: MakeHead) -> None:
    """Check that a candidate's first label moves its prediction for that prompt towards the
    label."""
    for satisfaction, sign in ((1.0, 1.0), (0.0, -1.0)):
        for name in CANDIDATES:
            head = make_head(CANDIDATES, DIMENSION)
            moved = -sign * _one(head, name)
            head.learn(_prompt(0), {name: Label(satisfaction)})
            moved += sign * _one(head, name)
            assert moved > 0.0, f"{name}: a label of {satisfaction} must move towards it"


def test_follows_the_labels(make_head: MakeHead) -> None:
    """Check that, after other lessons, labels of one kind move the prediction towards them, over
    all steps."""
    for satisfaction, sign in ((1.0, 1.0), (0.0, -1.0)):
        head = _taught(make_head)
        before = _one(head, CANDIDATES[1])
        for _ in range(REPEATED):
            head.learn(_prompt(0), {CANDIDATES[1]: Label(satisfaction)})
        moved = sign * (_one(head, CANDIDATES[1]) - before)
        assert moved > 0.0, f"{REPEATED} labels of {satisfaction} must move towards it"


def test_follows_a_revision(make_head: MakeHead) -> None:
    """Check that second verdicts move the prediction from the first ones towards themselves."""
    for previous, satisfaction, sign in ((0.0, 1.0, 1.0), (1.0, 0.0, -1.0)):
        revised, kept = make_head(CANDIDATES, DIMENSION), make_head(CANDIDATES, DIMENSION)
        for number in range(REPEATED):
            for head in (revised, kept):
                head.learn(_prompt(number), {CANDIDATES[1]: Label(previous)})
            revised.revise(_prompt(number), CANDIDATES[1], Label(previous), Label(satisfaction))
        moved = sign * (_one(revised, CANDIDATES[1]) - _one(kept, CANDIDATES[1]))
        assert moved > 0.0, f"revising {previous} to {satisfaction} must move towards the second"


def test_weighs_the_labels(make_head: MakeHead) -> None:
    """Check that a first label of less weight moves the prediction less, and one of zero weight not
    at all."""
    moved = []
    for weight in (0.0, 0.3, 1.0):
        head = make_head(CANDIDATES, DIMENSION)
        before = _one(head, CANDIDATES[1])
        head.learn(_prompt(0), {CANDIDATES[1]: Label(1.0, weight)})
        moved.append(_one(head, CANDIDATES[1]) - before)
    assert moved[0] == 0.0, f"a label of no weight must not move, moved by {moved[0]}"
    assert moved[0] < moved[1] < moved[2], f"more weight must move further, moved {moved}"


def test_leaves_the_others_alone(make_head: MakeHead) -> None:
    """Check that a candidate without a label keeps its own state, bit for bit; shared state may
    change, and the labelled candidate's must."""
    head = _taught(make_head)
    for taught in CANDIDATES:
        before = {name: _bits(head.own(name)) for name in CANDIDATES}
        head.learn(_prompt(3), {taught: Label(0.25)})
        head.revise(_prompt(3), taught, Label(0.25), Label(1.0))
        for name in CANDIDATES:
            is_same = _bits(head.own(name)) == before[name]
            if name == taught:
                assert not is_same, f"own({name!r}) must change when it is taught"
            else:
                assert is_same, f"own({name!r}) must not change when {taught!r} is taught"


def test_predicting_changes_nothing(make_head: MakeHead) -> None:
    """Check that predicting twice gives the same result, and leaves the head unchanged."""
    head = _taught(make_head)
    before = _bits(head.arrays())
    first, second = (head.predict(_prompt(5), CANDIDATES) for _ in range(2))
    assert first == second, "the same question must have the same answer"
    assert _bits(head.arrays()) == before, "predicting must not change the head"


def test_is_deterministic(make_head: MakeHead) -> None:
    """Check that the same labels in the same order make the same head, bit for bit, whatever other
    heads do."""
    one, other = make_head(CANDIDATES, DIMENSION), make_head(CANDIDATES, DIMENSION)
    bystander = make_head(CANDIDATES, DIMENSION)
    _teach(one, 0, LESSONS)
    for number in range(LESSONS):
        _teach(bystander, 2 * number, 2 * number + 2)
        _teach(other, number, number + 1)
        other.predict(_prompt(number), CANDIDATES)
    assert _bits(one.arrays()) == _bits(other.arrays()), "the same labels must make the same head"


def test_goes_on_where_it_was_saved(make_head: MakeHead) -> None:
    """Check that a saved and loaded head continues to learn exactly as the original does; and that
    they share no memory."""
    whole, copy = _taught(make_head), make_head(CANDIDATES, DIMENSION)
    copy.load(_through_a_file(whole.arrays()))
    assert _bits(copy.arrays()) == _bits(whole.arrays()), "what is loaded must be what was saved"
    before = _bits(whole.arrays())
    _teach(copy, LESSONS, 2 * LESSONS)
    assert _bits(whole.arrays()) == before, "a head must not share what was loaded into another"
    _teach(whole, LESSONS, 2 * LESSONS)
    assert _bits(copy.arrays()) == _bits(whole.arrays()), "a loaded head must learn as before"
    prompt = _prompt(9)
    same = copy.predict(prompt, CANDIDATES) == whole.predict(prompt, CANDIDATES)
    assert same, "a loaded head must predict as before"


def test_takes_candidates_in_and_out(make_head: MakeHead) -> None:
    """Check that an added candidate comes after the others and learns, that a removed one is
    unknown, and that the others' own state stays."""
    head, (gone, *others) = _taught(make_head), CANDIDATES
    before = [_own(head, name) for name in CANDIDATES]
    head.add("newcomer")
    known = tuple(head.candidates)
    assert known == (*CANDIDATES, "newcomer"), f"a newcomer stands behind the others, in {known}"
    after = [_own(head, name) for name in CANDIDATES]
    assert after == before, "a newcomer must not change the others"
    for _ in range(REPEATED):
        head.learn(_prompt(0), {"newcomer": Label(0.0)})
    assert _one(head, "newcomer") < 0.5, "a newcomer must follow its labels"

    head.remove(gone)
    assert tuple(head.candidates) == (*others, "newcomer"), "who goes is no candidate"
    after = [_own(head, name) for name in others]
    assert after == before[1:], "who goes must not change the others"
    with _refused(head, KeyError, "predicting for one that went"):
        head.predict(_prompt(7), [gone])


def test_survives_extreme_features(make_head: MakeHead) -> None:
    """Check that with zeros, and with the largest and smallest possible numbers, probabilities
    stay probabilities, and the head can still learn."""
    for title, features in SOUND.items():
        head = _taught(make_head)
        for number in range(LESSONS):
            head.learn(features, {CANDIDATES[number % 3]: Label(float(number % 2))})
            head.revise(features, CANDIDATES[number % 3], Label(float(number % 2)), Label(0.5))
        for prompt in (*SOUND.values(), _prompt(0)):
            _probabilities(head, prompt, CANDIDATES)
        for name, array in head.arrays().items():
            assert np.isfinite(array).all(), f"{title}: {name} must stay finite"


def test_refuses_unsound_features(make_head: MakeHead) -> None:
    """Check that anything but ``dimension`` finite numbers raises ValueError, and changes
    nothing."""
    head = _taught(make_head)
    for title, features in UNSOUND.items():
        with _refused(head, ValueError, f"{title}: predicting"):
            head.predict(features, CANDIDATES)
        with _refused(head, ValueError, f"{title}: learning"):
            head.learn(features, {CANDIDATES[0]: Label(1.0)})
        with _refused(head, ValueError, f"{title}: revising"):
            head.revise(features, CANDIDATES[0], Label(1.0), Label(0.0))


def _prompt(number: int) -> Features:
    """Draw the features of one of many prompts, of unit length."""
    drawn = np.random.default_rng(number).normal(size=DIMENSION)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


def _teach(head: Head, start: int, stop: int) -> None:
    """Teach the lessons of those numbers: another candidate each time, and every fifth label
    revised."""
    for number in range(start, stop):
        name, satisfaction = CANDIDATES[number % 3], (0.0, 1.0, 1.0, 0.4)[number % 4]
        head.learn(_prompt(number), {name: Label(satisfaction)})
        if number % 5 == 0:
            head.revise(_prompt(number), name, Label(satisfaction), Label(1.0 - satisfaction))


def _taught(make_head: MakeHead, lessons: int = LESSONS) -> Head:
    head = make_head(CANDIDATES, DIMENSION)
    _teach(head, 0, lessons)
    return head


def _one(head: Head, name: str) -> float:
    (predicted,) = head.predict(_prompt(0), [name])
    return predicted


def _probabilities(head: Head, features: Features, named: Sequence[str]) -> list[float]:
    predicted = head.predict(features, named)
    assert len(predicted) == len(named), f"{len(named)} predictions expected, are {len(predicted)}"
    for each in predicted:
        assert isinstance(each, float), f"a prediction must be a float, is {each!r}"
        assert 0.0 <= each <= 1.0, f"a prediction must be in [0, 1], is {each}"
    return predicted


def _bits(arrays: Mapping[str, NDArray[Any]]) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (str(a.dtype), a.shape, a.tobytes()) for name, a in arrays.items()}


def _own(head: Head, name: str) -> list[tuple[str, tuple[int, ...], bytes]]:
    """Read a candidate's own state, leaving out the names, which may hold its place."""
    return sorted(_bits(head.own(name)).values())


def _through_a_file(arrays: Arrays) -> Arrays:
    """Save and load arrays as a snapshot does: without pickling."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    with np.load(io.BytesIO(buffer.getvalue()), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


@contextmanager
def _refused(head: Head, error: type[Exception], title: str) -> Iterator[None]:
    before = _bits(head.arrays())
    try:
        yield
    except error:
        assert _bits(head.arrays()) == before, f"{title} must change nothing"
        return
    raise AssertionError(f"{title} must be a {error.__name__}")
