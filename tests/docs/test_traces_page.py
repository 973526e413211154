"""docs/traces.md names what LiteLLM's logs and traces are told, and nothing else."""

import re

from litellm_messplus.proxy.visibility import Baseline, attributes, routing_card
from tests.support.builders import request
from tests.support.markdown import ROOT

PAGE = (ROOT / "docs" / "traces.md").read_text("utf-8")


def section(name: str) -> str:
    return PAGE.split(f"## {name}\n")[1].split("\n## ")[0]


def first_cells(name: str) -> list[str]:
    return re.findall(r"^\| (`.*?) \|", section(name), re.M)


def test_every_field_of_the_card_is_on_the_page() -> None:
    record = request()
    card = routing_card(record, record.chosen, 1, Baseline("model", "id"))

    named = {
        field for cell in first_cells("The routing card") for field in re.findall(r"\w+", cell)
    }
    assert named == set(card)


def test_every_attribute_is_on_the_page() -> None:
    record = request(aim=0.8, price=0.1, expected_satisfaction=0.9, propensity=1.0)

    cells = " ".join(first_cells("Traces"))
    named = {name.removeprefix("messplus") for name in re.findall(r"`([\w.]+)`", cells)}
    written = attributes(record, record.chosen, attempt=1)
    assert named == {name.removeprefix("messplus") for name in written}
