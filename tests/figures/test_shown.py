"""Each figure of the status is declared once, where it stands; what is unknown is shown as such."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from litellm_messplus.figures.shown import (
    JUDGE,
    KEY,
    LABEL_COSTS,
    LEVEL,
    SOURCE,
    WINDOW,
    Row,
    Shown,
    cells,
)
from litellm_messplus.figures.words import value_at, written
from litellm_messplus.status.report import Status
from litellm_messplus.store.key_activity import KeyStatus
from tests.support.statuses import status

STATUS = status()
(FOUND,) = STATUS.levels
WHOLE = FOUND.overall
KEY_STATUS = KeyStatus("llama", "default", "ab", 10, 5, 3, 0.25, 2)


@pytest.mark.parametrize(
    ("group", "found", "inside"),
    [
        (LEVEL, FOUND, ()),
        (WINDOW, WHOLE, ("answers", "satisfaction", "labels", "cost", "exploration", "overhead")),
        (SOURCE, WHOLE.labels.sources[0], ()),
        (JUDGE, STATUS.judges[0], ()),
        (LABEL_COSTS, STATUS.label_costs[0], ()),
        (KEY, KEY_STATUS, ()),
    ],
    ids=["level", "window", "source", "judge", "label costs", "key"],
)
def test_every_figure_of_a_part_is_declared_where_it_stands(
    group: Sequence[Shown], found: Any, inside: Sequence[str]
) -> None:
    """The parts in themselves, and the windows, have declarations of their own."""
    paths = [each.path for each in group]
    expected = {field.name for field in fields(found)} - {"overall", "last"}
    for part in inside:
        expected |= {f"{part}.{field.name}" for field in fields(value_at(found, part))}

    assert len(paths) == len(set(paths))
    assert expected - set(inside) <= set(paths)
    for path in paths:
        value_at(found, path)  # raises for a path that leads nowhere
    for cell in cells(group, found):
        assert "None" not in cell.text


def test_a_window_in_words() -> None:
    found = {cell.title: cell.text for cell in cells(WINDOW, WHOLE, "usd")}

    assert found["promise (95 %)"] == "too early"
    assert found["cost per request"] == "0.01 usd"
    assert found["explored"] == "10.0 % of requests, 10.0 % of cost"
    assert found["predicting"] == "2 ms, 0.40 % of all time"


def test_what_is_unknown_is_shown_in_its_own_words() -> None:
    shown = Shown("cost.per_request", row=Row("cost", ":figure $", unknown="not known yet"))
    unpriced = replace(WHOLE, cost=replace(WHOLE.cost, per_request=None))

    assert cells([shown], unpriced, "usd")[0].text == "not known yet"


def test_more_is_shown_where_there_is_more() -> None:
    shown = Shown("cost.total", row=Row("cost", ":figure $", more=("cost.calls_without_cost", "!")))
    missing = replace(WHOLE, cost=replace(WHOLE.cost, calls_without_cost=3))

    assert cells([shown], WHOLE, "usd")[0].text == "10 usd"
    assert cells([shown], missing, "usd")[0].text == "10 usd !"


def test_a_template_takes_several_paths_and_a_form() -> None:
    paths = "satisfaction.rate,satisfaction.low,satisfaction.high"

    assert written(f"so: {{{paths}:around}}", WHOLE) == "so: 70.0 % (66.7 to 73.1 %)"


def test_a_schema_of_the_status_says_what_each_figure_means() -> None:
    parts = TypeAdapter(Status).json_schema()["$defs"]

    answered = parts["Answers"]["properties"]["answered"]
    assert answered["description"].startswith("Those that got an answer")
    verdict = parts["Satisfaction"]["properties"]["verdict"]
    assert verdict["description"] == "One of four words."
