"""Requests whose second call could act a second time are told from those whose tools the client
runs."""

from types import SimpleNamespace
from typing import Any

import pytest

from litellm_messplus.serving.surfaces.request import may_act, read_request

FUNCTION = {"type": "function", "function": {"name": "look", "parameters": {}}}
OF_RESPONSES = {"type": "function", "name": "look", "parameters": {}}
OF_ANTHROPIC = {"name": "look", "input_schema": {"type": "object"}}
CUSTOM = {"type": "custom", "name": "grammar"}


def acts(call_type: str, **given: Any) -> bool:
    own = "metadata" if call_type in ("acompletion", "atext_completion") else "litellm_metadata"
    logging = SimpleNamespace(call_type=call_type)
    kwargs = {"litellm_call_id": "1", "litellm_logging_obj": logging, own: {}, **given}
    request = read_request([{"role": "user", "content": "hello"}], kwargs)
    assert request is not None
    return may_act(request)


@pytest.mark.parametrize(
    ("call_type", "given"),
    [
        ("acompletion", {}),
        ("acompletion", {"tools": [FUNCTION, CUSTOM], "tool_choice": "required"}),
        ("acompletion", {"functions": [FUNCTION["function"]]}),
        ("acompletion", {"tools": None, "web_search_options": None, "extra_body": {"top_k": 3}}),
        ("atext_completion", {"prompt": "hello"}),
        ("aresponses", {"tools": [OF_RESPONSES, CUSTOM]}),
        ("anthropic_messages", {"tools": [OF_ANTHROPIC, {**OF_ANTHROPIC, "type": "custom"}]}),
        ("anthropic_messages", {"mcp_servers": []}),
    ],
)
def test_the_clients_tools_do_nothing_themselves(call_type: str, given: dict[str, Any]) -> None:
    assert not acts(call_type, **given)


@pytest.mark.parametrize(
    ("call_type", "given"),
    [
        ("acompletion", {"tools": [FUNCTION, {"type": "mcp", "server_url": "litellm_proxy"}]}),
        ("acompletion", {"tools": [{"googleSearch": {}}]}),
        ("acompletion", {"tools": [{"type": ["unreadable"]}]}),
        ("acompletion", {"tools": ["unreadable"]}),
        ("acompletion", {"web_search_options": {}}),
        ("acompletion", {"extra_body": {"tools": [{"type": "browser_search"}]}}),
        ("aresponses", {"tools": [{"type": "mcp", "server_label": "mail"}]}),
        ("aresponses", {"tools": [{"type": "web_search_preview"}]}),
        ("aresponses", {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}),
        ("aresponses", {"tools": [{"type": "computer_use_preview"}]}),
        ("aresponses", {"tools": [{"type": "not known yet"}]}),
        ("aresponses", {"conversation": "conv_1"}),
        ("aresponses", {"prompt": {"id": "pmpt_1"}}),
        ("anthropic_messages", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
        ("anthropic_messages", {"tools": [{"type": "code_execution_20250522", "name": "run"}]}),
        ("anthropic_messages", {"mcp_servers": [{"type": "url", "url": "https://mail"}]}),
        ("anthropic_messages", {"container": "container_1"}),
    ],
)
def test_tools_that_run_elsewhere_may_act(call_type: str, given: dict[str, Any]) -> None:
    assert acts(call_type, **given)
