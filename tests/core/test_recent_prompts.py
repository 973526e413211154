"""The prompts that were judged lately: few, each once, and predicted so that rates come out."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.head import Label
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.prompt_heads import PromptHeads
from litellm_messplus.core.recent import EVERY, KEPT, RecentPrompts
from litellm_messplus.core.surface import read_surface
from tests.support.builders import pair, point

HOPE = (0.1, 0.2, 0.0)


def sum_of(number: int, features: np.ndarray | None = None) -> Prompt:
    text = "Add " + " ".join(str(term) for term in range(number % 40))
    return Prompt(features, read_surface(Conversation.of_text(text)))


def build() -> RecentPrompts:
    return RecentPrompts(3, 2)


def learned(labels: int = 300) -> PromptHeads:
    """Long sums are hard; how hard depends on the model."""
    heads = PromptHeads(3, 2)
    for number in range(labels):
        terms = 7 * number % 40
        heads.learn(number % 3, sum_of(terms), 0.0, Label(float(terms < 10 * (1 + number % 3))))
    return heads


def filled(recent: RecentPrompts, heads: PromptHeads, requests: int) -> RecentPrompts:
    for number in range(requests):
        features = None if number % 5 == 0 else pair(number % 3 - 1.0, 1.0)
        prompt = sum_of(11 * number, features) if number % 7 else point(1.0, 0.0)
        recent.add(f"r{number}", prompt, heads)
    return recent


def predicted(recent: RecentPrompts, heads: PromptHeads, *rates: float) -> RecentPrompts:
    for _ in range(EVERY):
        recent.counted(heads, rates, HOPE)
    return recent


def unit(*numbers: float) -> list[float]:
    return [float(each) for each in np.array(numbers) / np.linalg.norm(numbers)]


def bits(recent: RecentPrompts) -> dict[str, bytes]:
    arrays = {name: array.tobytes() for name, array in recent.arrays().items()}
    return {**arrays, "plain": json.dumps(recent.plain()).encode()}


def copied(recent: RecentPrompts) -> RecentPrompts:
    copy = build()
    arrays = {name: array.copy() for name, array in recent.arrays().items()}
    copy.load(json.loads(json.dumps(recent.plain())), arrays)
    return copy


def test_at_first_there_is_none_and_nothing_is_predicted() -> None:
    recent = predicted(build(), PromptHeads(3, 2), 0.5, 0.5, 0.5)
    assert len(recent) == recent.version == 0
    assert recent.satisfaction.shape == (0, 3)
    assert recent.offsets.tolist() == [0.0, 0.0, 0.0]


@given(st.integers(0, 3 * KEPT))
def test_no_more_than_the_bound_are_kept_and_the_newest_are(requests: int) -> None:
    heads, recent = PromptHeads(3, 2), build()
    for number in range(requests):
        recent.add(f"r{number}", point(1.0, number), heads)
    assert len(recent) == min(requests, KEPT)
    assert recent.requests == [f"r{number}" for number in range(requests)][-KEPT:]
    assert len(recent.numbers) == len(recent.words) == len(recent.ramps) == KEPT
    if requests:
        newest = recent.words[(requests - 1) % KEPT].tolist()
        assert newest == pytest.approx(unit(1.0, requests - 1))


def test_a_request_is_kept_once_however_many_of_its_calls_are_judged() -> None:
    heads, recent = PromptHeads(3, 2), build()
    for request_id in ("r1", "r1", "r2", "r1", "r2"):
        recent.add(request_id, sum_of(len(request_id)), heads)
    assert len(recent) == 2
    assert recent.requests == ["r1", "r2"]


def test_predictions_are_made_anew_after_so_many_labels() -> None:
    heads = learned()
    recent = filled(build(), heads, 40)
    versions = []
    for _ in range(3 * EVERY):
        recent.counted(heads, (0.5, 0.6, 0.7), HOPE)
        versions.append(recent.version)
    assert versions == [number // EVERY for number in range(1, 3 * EVERY + 1)]
    assert recent.satisfaction.shape == (40, 3)
    assert recent.hope.tolist() == list(HOPE)


@pytest.mark.parametrize("rates", [(0.5, 0.6, 0.7), (0.05, 0.3, 0.95), (0.9, 0.1, 0.5)])
def test_recent_predictions_have_the_measured_means(rates: tuple[float, float, float]) -> None:
    """Though the heads say that these prompts are very different."""
    heads = learned(600)
    recent = filled(build(), heads, KEPT)
    for _ in range(2):
        predicted(recent, heads, *rates)
    assert recent.satisfaction.mean(axis=0) == pytest.approx(rates, abs=0.01)
    assert np.ptp(recent.satisfaction, axis=0).min() > 0.2
    assert ((recent.satisfaction > 0.0) & (recent.satisfaction < 1.0)).all()


def test_where_the_heads_say_nothing_every_prompt_has_the_rate() -> None:
    heads = PromptHeads(3, 2)
    recent = predicted(filled(build(), heads, 30), heads, 0.3, 0.5, 0.7)
    assert recent.satisfaction == pytest.approx(np.tile([0.3, 0.5, 0.7], (30, 1)))
    assert recent.offsets == pytest.approx([0.0, 0.0, 0.0])


def test_what_a_prompt_does_not_tell_stands_at_the_average() -> None:
    heads, recent = learned(), build()
    recent.add("r1", Prompt(pair(1.0, 0.0)), heads)
    recent.add("r2", Prompt(pair(0.0, 0.0)), heads)
    predicted(recent, heads, 0.5, 0.5, 0.5)
    words = heads.combined.words @ (np.array([[1.0, 0.0], [0.0, 0.0]]) - heads.average.words).T
    odds = np.log(recent.satisfaction / (1.0 - recent.satisfaction))
    assert odds[0] - odds[1] == pytest.approx(np.full(3, words[0] - words[1]), abs=1e-4)


@pytest.mark.parametrize("requests", [0, 1, 50, KEPT + 17])
def test_what_was_saved_goes_on_to_the_bit(requests: int) -> None:
    heads = learned(60)
    recent = filled(build(), heads, requests)
    for _ in range(EVERY + 3):
        recent.counted(heads, (0.5, 0.6, 0.7), HOPE)
    loaded = copied(recent)
    assert bits(loaded) == bits(recent)
    for each in (recent, loaded):
        each.add("r0", sum_of(5), heads)
        each.add("later", sum_of(39, pair(0.0, 1.0)), heads)
        predicted(each, heads, 0.2, 0.6, 0.9)
    assert bits(loaded) == bits(recent)
    assert loaded.ramps.tobytes() == recent.ramps.tobytes()
    assert len(loaded) == len(recent)
