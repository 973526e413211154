"""Texts by templates: what is unknown is said so, what is wrong raises, and a line stays a line."""

from typing import Any

import pytest
from jinja2 import UndefinedError

from litellm_messplus.figures.templates import written

FOUND: dict[str, Any] = {"rate": 0.7, "cost": {"total": None}, "savings": None, "name": "a\nb"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ rate | percent }}, {{ around(rate, 0.6, 0.8) }}", "70.0 %, 70.0 % (60.0 to 80.0 %)"),
        ("{{ rate | figure('usd') }} in {{ rate | ms }}", "$0.7 in 700 ms"),
        ("{{ cost.total | figure('usd') }}", "unknown"),
        ("{{ savings.saved_share | percent }}", "unknown"),
        ("{{ name }}", "a b"),
    ],
)
def test_a_template_is_filled(text: str, expected: str) -> None:
    assert written(text, FOUND) == expected


@pytest.mark.parametrize("text", ["{{ price }}", "{{ cost.of_all }}", "{{ cost.of.all }}"])
def test_a_wrong_name_raises(text: str) -> None:
    with pytest.raises(UndefinedError):
        written(text, FOUND)
