"""A prompt's tokens are counted where the model's own tokenizer is at hand, and nowhere else."""

from typing import Any

import pytest
import tiktoken

from litellm_messplus.core.encoder import Conversation, Turn
from litellm_messplus.core.engine import Question
from litellm_messplus.costs.price import Price
from litellm_messplus.serving.deployments.metering import LONGEST, TOKENS_PER_TURN, PromptTokens
from tests.support.builders import LARGE, SMALL, build_engine, build_zoo, point

HELLO = Conversation.of_text("How many people live in Reykjavík?")


def deployment(model: str, **params: Any) -> dict[str, Any]:
    return {"model_name": "zoo", "litellm_params": {"model": model, **params}}


def counted(*models: dict[str, Any], conversation: Conversation = HELLO) -> dict[str, int]:
    tokens = PromptTokens(["zoo"], models)
    tokens.warm_up()
    return dict(tokens.count("zoo", conversation))


def test_openais_models_are_counted_by_their_own_tokenizers() -> None:
    found = counted(deployment("gpt-4o-mini"), deployment("openai/gpt-4"))

    for model, name in (("gpt-4o-mini", "o200k_base"), ("openai/gpt-4", "cl100k_base")):
        words = len(tiktoken.get_encoding(name).encode(HELLO.text))
        assert found[model] == words + TOKENS_PER_TURN


@pytest.mark.parametrize(
    "model",
    [
        deployment("hosted_vllm/meta-llama/Llama-3.1-8B-Instruct"),
        deployment("openai/my-own-model", api_base="http://localhost:8000/v1"),
        deployment("anthropic/claude-3-5-sonnet-20241022"),
        deployment("text-completion-openai/davinci"),  # its tokenizer is not in the package
        deployment("nobody/knows"),
    ],
    ids=lambda model: model["litellm_params"]["model"],
)
def test_others_are_left_to_their_characters(model: dict[str, Any]) -> None:
    assert counted(model) == {}


def test_other_groups_are_none_of_ours() -> None:
    assert counted({**deployment("gpt-4o"), "model_name": "another"}) == {}


def test_a_long_prompt_is_not_counted() -> None:
    at_most, longer = Conversation.of_text("x" * LONGEST), Conversation.of_text("x" * (LONGEST + 1))
    assert counted(deployment("gpt-4o"), conversation=at_most)
    assert counted(deployment("gpt-4o"), conversation=longer) == {}


@pytest.mark.parametrize("text", ["", "\ud800 alone", "\x00\x1b", "<|endoftext|>"])
def test_garbage_is_counted_too(text: str) -> None:
    (found,) = counted(
        deployment("gpt-4o"), conversation=Conversation((Turn("user", text),))
    ).values()
    assert found >= TOKENS_PER_TURN


def test_the_expected_cost_goes_by_what_was_counted() -> None:
    """The price of a prompt token is set apart, so that only it can make the difference."""
    engine = build_engine(
        build_zoo({SMALL: Price(1.0, 0.0), LARGE: Price(1.0, 0.0)}, largest=LARGE)
    )
    level = engine.zoo.levels["default"]
    question = Question("r1", level, point(1.0, 0.0), 400, (SMALL, LARGE), prompt_tokens={SMALL: 7})
    estimates = engine.situation(question).estimates
    assert [estimate.cost for estimate in estimates] == [7.0, 100.0]
