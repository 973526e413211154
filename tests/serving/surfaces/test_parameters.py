"""Arms: what deployments of one model are called, and which requests an arm contradicts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.serving.surfaces.parameters import (
    EFFORTS,
    LONGEST,
    PARAMETERS,
    arm_name,
    contradicted,
    effort,
    read_parameters,
)

MODEL = "openai/gpt-5-mini"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)
SET = st.dictionaries(st.sampled_from([*PARAMETERS]), JSON).map(read_parameters)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, ""),
        ({"api_base": "http://host", "temperature": 0.2}, ""),
        ({"reasoning_effort": "low"}, ", low effort"),
        ({"reasoning_effort": {"effort": "low", "summary": "auto"}}, ", low effort"),
        ({"reasoning": {"effort": "low"}}, ", low effort"),
        ({"reasoning_effort": "none"}, ", no reasoning"),
        ({"thinking": {"type": "disabled"}}, ", no reasoning"),
        ({"thinking": {"type": "adaptive"}}, ", adaptive thinking"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 4096}},
            ", thinking up to 4096 tokens",
        ),
        ({"service_tier": "flex", "max_tokens": 500}, ", flex tier, at most 500 tokens"),
        ({"extra_body": {"samples": 5, "b": {"c": True}}}, ", b.c true, samples 5"),
        (
            {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}},
            ", enable_thinking false",
        ),
        ({"prompt_id": "terse"}, ", prompt terse"),
        ({"max_tokens": None, "extra_body": {}}, ""),
    ],
)
def test_an_arm_is_named_by_what_it_sets(given: dict[str, Any], words: str) -> None:
    assert arm_name(MODEL, read_parameters(given)) == f"{MODEL}{words}"


def test_a_name_shows_no_text_that_may_be_long_or_secret() -> None:
    body = {"api_key": "sk-0123456789abcdefghijklmn", "instructions": "Be terse. " * 200}
    name = arm_name(MODEL, read_parameters({"extra_body": body}))
    assert "sk-" not in name
    assert "terse" not in name
    other = arm_name(MODEL, read_parameters({"extra_body": {**body, "api_key": "sk-other!"}}))
    assert other != name


@given(SET)
def test_every_name_is_bounded_and_one_line(own: dict[str, Any]) -> None:
    name = arm_name(MODEL, own)
    assert len(name) <= len(MODEL) + LONGEST + 2
    assert name == MODEL or name.startswith(f"{MODEL}, ")
    assert name == arm_name(MODEL, dict(reversed(own.items()))) or len(own) > 1


@given(SET)
def test_an_arm_never_contradicts_what_it_sets_itself(own: dict[str, Any]) -> None:
    assert not list(contradicted(own, own))


@pytest.mark.parametrize(
    ("own", "asked", "found"),
    [
        ({"reasoning_effort": "low"}, {"reasoning_effort": "high"}, ["reasoning_effort"]),
        ({"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}, []),
        (
            {"reasoning_effort": "low"},
            {"thinking": {"type": "enabled", "budget_tokens": 9}},
            ["thinking"],
        ),
        ({"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}, []),
        ({"reasoning_effort": "low"}, {"service_tier": "flex"}, []),
        ({}, {"reasoning_effort": "high", "max_tokens": 5}, []),
        ({"max_tokens": 500}, {"max_tokens": 100}, []),
        ({"max_tokens": 500}, {"max_completion_tokens": 1000}, ["max_completion_tokens"]),
        ({"max_tokens": 500}, {"max_tokens": "many"}, []),
        ({"extra_body": {"samples": 5}}, {"extra_body": {"samples": 1}}, ["extra_body"]),
    ],
)
def test_a_request_contradicts_an_arm_that_sets_the_same_in_another_way(
    own: dict[str, Any], asked: dict[str, Any], found: list[str]
) -> None:
    assert list(contradicted(own, asked)) == found


def test_more_effort_ranks_higher_and_none_stated_is_medium() -> None:
    ranks = [effort({"reasoning_effort": each}) for each in EFFORTS]
    assert ranks == sorted(set(ranks))
    assert effort({}) == effort({"reasoning_effort": "medium"})
    budgets = [effort({"thinking": {"budget_tokens": each}}) for each in (0, 1024, 4096)]
    assert budgets == sorted(set(budgets))
    assert effort({"max_tokens": 500}) < effort({"max_tokens": 4096}) < effort({})
