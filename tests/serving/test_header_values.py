"""Names in response headers: whatever an operator chose, the answer goes out."""

from urllib.parse import unquote

import pytest
from starlette.datastructures import MutableHeaders

from litellm_messplus.serving.visibility import header_value


@pytest.mark.parametrize("name", ["default", "openai/gpt-4o-mini", "Llama 3.1 (8B), 100 %", ""])
def test_a_plain_name_is_shown_as_it_is(name: str) -> None:
    assert header_value(name) == name


@pytest.mark.parametrize(
    "name", ["模型", "größe", "a\r\nset-cookie: b", "\x7f\x00", "\u200b"], ids=ascii
)
def test_any_other_name_can_be_sent_and_read_back(name: str) -> None:
    shown = header_value(name)
    assert shown.isascii()
    assert shown.isprintable()
    assert unquote(shown) == name
    MutableHeaders()["x-messplus-model"] = shown


def test_a_name_that_is_no_text_is_shown_all_the_same() -> None:
    assert header_value("a\ud800") == "a?"
