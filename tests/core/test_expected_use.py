"""What each model would use for the recent prompts, at whatever prices there are."""

import numpy as np
import pytest

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.prompt_heads import LengthHeads, PromptHeads
from litellm_messplus.core.recent import EVERY, RecentPrompts
from litellm_messplus.core.surface import read_surface
from litellm_messplus.core.zoo_state import ExpectedUse
from litellm_messplus.costs.price import Price
from litellm_messplus.costs.usage import TokenEstimator
from tests.support.builders import point

TEXTS = ("Hi", "What is 17 + 25?", "x" * 4000)


def prompt_of(text: str) -> Prompt:
    return Prompt(None, read_surface(Conversation.of_text(text)))


def estimators() -> list[TokenEstimator]:
    """The first model reads two characters a token and writes 10, the second four and 300."""
    built = []
    for characters, prompt, completion, seconds in ((20, 10, 10, 0.5), (40, 10, 300, 4.0)):
        estimator = TokenEstimator()
        estimator.observe(characters, prompt, completion, seconds)
        built.append(estimator)
    return built


def recent(*prompts: Prompt) -> RecentPrompts:
    heads = PromptHeads(2, 2)
    kept = RecentPrompts(2, 2)
    for number, prompt in enumerate(prompts):
        kept.add(f"r{number}", prompt, heads)
    for _ in range(EVERY):
        kept.counted(heads, (0.5, 0.5), (0.1, 0.1))
    return kept


def use(lengths: LengthHeads | None = None) -> ExpectedUse:
    kept = recent(*map(prompt_of, TEXTS), point(1.0, 0.0))
    return ExpectedUse.of(kept, lengths or LengthHeads(2, 2), estimators())


def test_before_there_is_a_prompt_nothing_is_used() -> None:
    for none in (
        ExpectedUse.none_yet(2),
        ExpectedUse.of(RecentPrompts(2, 2), LengthHeads(2, 2), estimators()),
    ):
        assert none.version == 0
        assert none.cost(1, Price(1.0, 2.0)).shape == (0,)


def test_tokens_are_those_of_the_characters_by_each_models_own_ratio() -> None:
    """Of a prompt without a surface the average is expected."""
    found = use()
    assert found.version == 1
    for model, ratio in ((0, 2), (1, 4)):
        tokens = [len(text) / ratio for text in TEXTS]
        assert found.prompt_tokens[:3, model] == pytest.approx(tokens, rel=1e-4)
    assert found.prompt_tokens[3] == pytest.approx([10.0, 10.0])
    assert found.completion_tokens[3] == pytest.approx([10.0, 300.0])


def test_answers_are_as_long_as_the_prompt_tells() -> None:
    lengths = LengthHeads(2, 2)
    for _ in range(100):
        for text, multiple in zip(TEXTS, (0.25, 1.0, 4.0), strict=True):
            lengths.learn(0, prompt_of(text), multiple)
    found = use(lengths)
    multiples = np.array([lengths.multiples(prompt_of(text)) for text in TEXTS])
    assert found.completion_tokens[:3] == pytest.approx(multiples * [10.0, 300.0], rel=1e-4)
    assert found.seconds[:3] == pytest.approx(multiples * [0.5, 4.0], rel=1e-4)
    assert found.completion_tokens[2, 0] > 4.0 * found.completion_tokens[0, 0]


def test_the_cost_follows_the_price() -> None:
    found = use()
    whole = Price(prompt=1.0, completion=2.0, request=3.0, second=4.0)
    used = found.prompt_tokens + 2.0 * found.completion_tokens + 4.0 * found.seconds
    for model in (0, 1):
        assert found.cost(model, Price()).tolist() == [0.0] * 4
        assert found.cost(model, whole) == pytest.approx(3.0 + used[:, model])


def test_what_was_saved_is_the_same_to_the_bit() -> None:
    for found in (use(), ExpectedUse.none_yet(2)):
        arrays = {name: array.copy() for name, array in found.arrays().items()}
        loaded = ExpectedUse.load(arrays)
        assert loaded.version == found.version
        for name, array in found.arrays().items():
            assert loaded.arrays()[name].shape == array.shape
            assert loaded.arrays()[name].tobytes() == array.tobytes()
