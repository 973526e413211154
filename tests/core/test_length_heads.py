"""The heads of lengths: what the prompt tells of the length of each model's answer."""

import numpy as np
import pytest

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.prompt_heads import LARGEST_SHIFT, LengthHeads
from litellm_messplus.core.surface import read_surface
from tests.support.builders import point

LONG, SHORT = point(1, 0), point(-1, 0)


def plain(text: str) -> Prompt:
    """A prompt of which the features came too late."""
    return Prompt(None, read_surface(Conversation.of_text(text)))


SUM, POEM = plain("What is 17 + 25 + 1048 + 99?"), plain("Write a poem about the rain in spring.")


def taught(answers: int) -> LengthHeads:
    """Both models write four times as long an answer to one prompt as to the other."""
    heads = LengthHeads(2, 2)
    for number in range(answers):
        is_long = number // 2 % 2 == 0
        heads.learn(number % 2, LONG if is_long else SHORT, 2.0 if is_long else 0.5)
    return heads


def bits(heads: LengthHeads) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in heads.arrays().items()}


def test_they_come_to_know_which_prompts_have_long_answers() -> None:
    """A prompt that could not be read predicts nothing; an answer of no length teaches nothing."""
    assert LengthHeads(3, 2).multiples(LONG) == [1.0, 1.0, 1.0]
    heads = taught(400)
    before = bits(heads)
    heads.learn(0, LONG, 0.0)
    assert bits(heads) == before
    assert heads.multiples(Prompt(None)) == [1.0, 1.0]
    assert heads.multiples(LONG) == pytest.approx([2.0, 2.0], rel=0.1)
    assert heads.multiples(SHORT) == pytest.approx([0.5, 0.5], rel=0.1)


def test_the_answers_of_each_model_have_lengths_of_their_own() -> None:
    """One writes three lines of working for a sum, another the sum, and long poems."""
    heads = LengthHeads(2, 2)
    for _ in range(200):
        for model, prompt in ((0, SUM), (1, POEM)):
            heads.learn(model, prompt, 2.0)
        for model, prompt in ((0, POEM), (1, SUM)):
            heads.learn(model, prompt, 0.5)
    assert heads.multiples(SUM) == pytest.approx([2.0, 0.5], rel=0.1)
    assert heads.multiples(POEM) == pytest.approx([0.5, 2.0], rel=0.1)


def test_no_prompt_multiplies_by_more_than_the_bound() -> None:
    heads = LengthHeads(1, 2)
    for _ in range(500):
        heads.learn(0, LONG, 1e9)
        heads.learn(0, SHORT, 1e-9)
    assert heads.multiples(LONG) == pytest.approx([np.exp(LARGEST_SHIFT)])
    assert heads.multiples(SHORT) == pytest.approx([np.exp(-LARGEST_SHIFT)])


def test_several_prompts_at_once_are_as_each_alone() -> None:
    heads = LengthHeads(2, 2)
    prompts = [
        Prompt(each.features, read.surface)
        for each, read in zip((LONG, SHORT) * 20, (POEM, SUM, SUM) * 14, strict=False)
    ]
    for number, prompt in enumerate(prompts):
        heads.learn(number % 2, prompt, 1.0 + number % 3)
    surface = np.array([prompt.ramps for prompt in prompts])
    words = np.array([prompt.words(2) for prompt in prompts])
    alone = [heads.multiples(prompt) for prompt in prompts]
    np.testing.assert_allclose(heads.multiples_of_many(surface, words), alone, rtol=1e-4)


def test_what_was_saved_goes_on_exactly() -> None:
    heads, loaded = taught(45), LengthHeads(2, 2)
    heads.learn(1, SUM, 0.5)
    loaded.load({name: array.copy() for name, array in heads.arrays().items()})
    for each in (heads, loaded):
        each.learn(0, LONG, 3.0)
        each.learn(1, POEM, 0.1)
    assert loaded.multiples(SHORT) == heads.multiples(SHORT)
    assert bits(loaded) == bits(heads)
