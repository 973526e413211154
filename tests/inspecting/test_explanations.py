"""Explanations of a seeded database: every number is the one that is logged, in the text to four
digits."""

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from litellm_messplus.core.decision import Reason
from litellm_messplus.core.hold import Hold
from litellm_messplus.core.surface import NAMES
from litellm_messplus.inspecting.explain import WORDS, Explanation, explain
from litellm_messplus.inspecting.logged import Logged, logged_in, public_history
from litellm_messplus.inspecting.render import HOLDS, render_explanation, sentences
from litellm_messplus.store.history import find, history
from litellm_messplus.store.reading import reading
from tests.support.history import History

NUMBERS = ("alpha", "aim", "queue", "price", "propensity", "exploration_probability")
EACH = 4
"""Every fourth request is explained: 160 of them."""


def text_of(found: Explanation) -> str:
    written = StringIO()
    Console(width=400, file=written).print(render_explanation(found))
    return written.getvalue()


async def _explain_all(database: Path, ids: list[str]) -> dict[str, Explanation]:
    return {each: explain(await logged_in(str(database), each)) for each in ids}


@pytest.fixture(scope="session")
def explanations(database: Path, recorded: History) -> dict[str, Explanation]:
    ids = [request.request_id for request in recorded.requests[::EACH]]
    return asyncio.run(_explain_all(database, ids))


def rows(database: Path, query: str) -> dict[str, dict[str, Any]]:
    """By request, read past everything that is tested here."""
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        return {row["request_id"]: dict(row) for row in connection.execute(query)}


def test_every_number_is_as_logged(database: Path, explanations: dict[str, Explanation]) -> None:
    requests = rows(database, "SELECT * FROM requests")
    outcomes = rows(database, "SELECT * FROM outcomes")
    for request_id, found in explanations.items():
        row, dumped = requests[request_id], json.loads(json.dumps(found.as_dict()))
        for name in NUMBERS:
            assert dumped["request"][name] == row[name]
        for name in ("satisfaction", "satisfaction_weight", "cost", "cost_largest"):
            assert dumped["outcome"][name] == outcomes[request_id][name]
        cost, satisfaction = (
            json.loads(row[f"estimated_{name}"]) for name in ("cost", "satisfaction")
        )
        assert {each["candidate"]: each["cost"] for each in dumped["candidates"]} == cost
        assert {
            each["candidate"]: each["satisfaction"] for each in dumped["candidates"]
        } == satisfaction
        surface = np.frombuffer(row["surface"], "<f4").tolist()
        assert dumped["prompt"]["numbers"] == dict(zip(NAMES, surface, strict=True))


def test_the_logs_labels_count(database: Path, explanations: dict[str, Explanation]) -> None:
    query = "SELECT label_id FROM labels WHERE counts"
    with closing(sqlite3.connect(database)) as connection:
        counting = {label for (label,) in connection.execute(query)}
    seen = 0
    for found in explanations.values():
        for label in found.logged.labels:
            assert found.counts(label) is (label["label_id"] in counting)
            seen += 1
    assert seen > 100


def test_a_choice_without_the_lowest_score_is_stated(explanations: dict[str, Explanation]) -> None:
    others = 0
    for found in explanations.values():
        chosen = found.logged.request["chosen"]
        is_other = found.now is not None and found.now.candidate != chosen
        assert ("By the logged numbers alone" in " ".join(sentences(found))) is is_other
        others += is_other
    assert others


def explained(database: Path, **changed: Any) -> str:
    """The sentences on a request with something else in its row."""
    logged = asyncio.run(logged_in(str(database), "r00001"))
    outcome = {name: changed.pop(name) for name in list(changed) if name in logged.outcome}
    return " ".join(
        sentences(
            explain(
                Logged(
                    {**logged.request, "policy": "adaptive", **changed},
                    {**logged.outcome, **outcome},
                    logged.calls,
                    logged.labels,
                    logged.counting,
                    True,
                    logged.surface,
                    None,
                )
            )
        )
    )


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"status": None}, "It is under way"),
        ({"status": "failure"}, "No answer came"),
        ({"served": "other"}, "other served; "),
        ({"served": None}, "a fallback outside the zoo"),
        ({"is_exploration": True, "exploration_calls": 0}, "It was a probe: "),
        (
            {"is_exploration": True, "exploration_calls": 1},
            "probe in addition to the choice: 1 to be",
        ),
        ({"is_exploration": True, "exploration_calls": 2, "policy": "paper"}, "exploration: 2 to"),
        ({"is_exploration": False, "exploration_calls": 1}, "no exploration; 1 more"),
        ({"price": None, "policy": "paper"}, "policy paper has none"),
        ({"queue": 2.5}, "2.5 satisfied requests owed."),
        ({"queue": -2.5}, "2.5 satisfied requests saved up."),
        ({"satisfaction": None}, "No label of the served call counts"),
        ({"estimated_cost": {}, "estimated_satisfaction": {}}, "No candidate has an estimate"),
        ({"reason": "tricky\x1b[2J\nwords"}, "tricky [2J words"),
        ({"reason": "none_healthy"}, "no deployment is healthy"),
        ({"chosen": "litellm"}, " served: LiteLLM's own choice."),
        ({"chosen": "litellm", "reason": "deadline_missed"}, "choice: the decision missed its"),
        ({"encode_seconds": None}, "did not come in time"),
        ({"is_within_reach": False}, "able to hold alpha"),
        ({"conversation": "c", "line": "l", "turn": 3}, "Turn 3 of line l, in conversation c."),
        ({"conversation": "c", "hold": "warm"}, "It was held: its prompt cache was warm."),
    ],
)
def test_what_may_have_been(database: Path, changed: dict[str, Any], expected: str) -> None:
    assert expected in explained(database, **changed)


def test_any_id_of_a_request_finds_it(database: Path, recorded: History) -> None:
    call = recorded.calls[5]
    request = next(each for each in recorded.requests if each.request_id == call.request_id)

    found = asyncio.run(logged_in(str(database), request.asker.litellm_call_id))

    assert found.request["request_id"] == request.request_id


async def answer_of(database: Path, request_id: str) -> Any:
    """What the route of a proxy on this database answers."""
    async with reading(str(database)) as engine:
        found = await find(engine, request_id)
        assert found is not None
        rows = await history(engine, found.request_id)
        assert rows is not None
    return public_history(rows).model_dump(mode="json")


def test_every_reason_has_a_sentence() -> None:
    assert set(WORDS) == set(Reason)
    assert set(HOLDS) == set(Hold)


def read_answers(explanations: dict[str, Explanation], role: str) -> list[str]:
    """The sentences on a request whose first call was read, and then replaced or kept."""
    found = next(each for each in explanations.values() if each.logged.calls)
    first = {**found.logged.calls[0], "role": role, "candidate": "small"}
    reading = {"prompt_said": 0.74, "answer_said": 0.31}
    outcome = {**found.logged.outcome, "served": "large"}
    logged = replace(found.logged, calls=[{**first, **reading}], outcome=outcome)
    return sentences(replace(found, logged=logged))


def test_a_reading_is_shown_with_what_came_of_it(explanations: dict[str, Explanation]) -> None:
    sentence = "The answer of small says 31 %, the prompt said 74 %:"

    assert f"{sentence} kept." in read_answers(explanations, "served")
    assert f"{sentence} large answered instead." in read_answers(explanations, "replaced")
    assert all("the prompt said" not in text_of(each) for each in explanations.values())
