"""docs/traces.md names what LiteLLM's logs and traces are told, and nothing else."""

import re

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from litellm_messplus.proxy.visibility.card import Baseline, routing_card
from litellm_messplus.proxy.visibility.traces import Traces
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
    span = TracerProvider().get_tracer("litellm").start_span("request")
    record = request(aim=0.8, price=0.1, expected_satisfaction=0.9, propensity=1.0)
    Traces().decided(span, record, record.chosen, 1)
    span.end()

    cells = " ".join(first_cells("Traces"))
    named = {name.removeprefix("messplus") for name in re.findall(r"`([\w.]+)`", cells)}
    assert isinstance(span, ReadableSpan)
    told = {name.removeprefix("messplus") for name in span.attributes or ()}
    assert named == told
