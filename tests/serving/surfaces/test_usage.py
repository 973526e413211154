"""What endpoints say that a call used, in the words of every API."""

from types import SimpleNamespace
from typing import Any

import pytest
from litellm.llms.anthropic.chat.transformation import AnthropicConfig

from litellm_messplus.costs.price import Usage
from litellm_messplus.serving.surfaces.answers import (
    MOST_TOKENS,
    AbsurdUsageError,
    counted_usage,
    read_usage,
)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 2}, Usage(7, 2)),
        (SimpleNamespace(prompt_tokens=7, completion_tokens=2), Usage(7, 2)),
        ({"prompt_tokens": 7, "completion_tokens": 0}, Usage(7, 0)),
        ({"input_tokens": 7, "output_tokens": 2}, Usage(7, 2)),
        (
            {
                "prompt_tokens": 7,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(7, 5, cached_tokens=4, reasoning_tokens=3),
        ),
        (
            {
                "input_tokens": 7,
                "output_tokens": 5,
                "input_tokens_details": {"cached_tokens": 4},
                "output_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(7, 5, cached_tokens=4, reasoning_tokens=3),
        ),
        (
            {
                "input_tokens": 7,
                "output_tokens": 5,
                "cache_read_input_tokens": 4,
                "cache_creation_input_tokens": 2,
            },
            Usage(13, 5, cached_tokens=4, written_tokens=2),
        ),
        (
            {
                "input_tokens": 7,
                "output_tokens": 5,
                "cache_creation_input_tokens": 2,
                "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 1},
            },
            Usage(9, 5, written_tokens=2, hour_tokens=1),
        ),
        (
            {
                "input_tokens": 7,
                "output_tokens": 5,
                "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
            },
            Usage(7, 5, cached_tokens=4, written_tokens=3),
        ),
        ({"prompt_tokens": 7, "completion_tokens": 5, "prompt_tokens_details": None}, Usage(7, 5)),
    ],
    ids=str,
)
def test_usage_in_the_words_of_any_api(reported: object, expected: Usage) -> None:
    assert read_usage(reported) == expected


def test_a_part_is_never_more_than_the_whole() -> None:
    reported: dict[str, Any] = {
        "prompt_tokens": 7,
        "completion_tokens": 5,
        "prompt_tokens_details": {
            "cached_tokens": 4,
            "cache_creation_tokens": 70,
            "cache_creation_token_details": {"ephemeral_1h_input_tokens": 700},
        },
        "completion_tokens_details": {"reasoning_tokens": 50},
    }
    expected = Usage(7, 5, cached_tokens=4, reasoning_tokens=5, written_tokens=3, hour_tokens=3)
    assert read_usage(reported) == expected
    reported["prompt_tokens_details"] = {"cached_tokens": 70, "cache_creation_tokens": 1}
    assert read_usage(reported) == Usage(7, 5, cached_tokens=7, reasoning_tokens=5)


def test_what_litellm_makes_of_anthropics_usage_is_read() -> None:
    """Its prompt holds what the cache has to do with, and the numbers stand beside it too."""
    reported = AnthropicConfig().calculate_usage(
        {
            "input_tokens": 1,
            "output_tokens": 4,
            "cache_read_input_tokens": 58,
            "cache_creation_input_tokens": 3,
            "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 1},
        },
        reasoning_content=None,
    )
    expected = Usage(62, 4, cached_tokens=58, written_tokens=3, hour_tokens=1)
    assert read_usage(reported) == expected
    assert read_usage(reported.model_dump()) == expected


@pytest.mark.parametrize(
    "reported",
    [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": None}],
    ids=repr,
)
def test_no_usage_is_none_and_not_zero(reported: object) -> None:
    assert read_usage(reported) is None


@pytest.mark.parametrize("absurd", [-1, MOST_TOKENS + 1, float("inf"), float("nan"), "many"])
@pytest.mark.parametrize("name", ["prompt_tokens", "output_tokens"])
def test_what_no_call_can_have_used_is_refused(name: str, absurd: Any) -> None:
    with pytest.raises(AbsurdUsageError):
        read_usage({name: absurd})


def test_the_words_of_an_answer_are_counted_where_the_endpoint_did_not() -> None:
    assert counted_usage(40, "one two three four") == Usage(10, 4, is_counted=True)
    assert counted_usage(40, "") is None
