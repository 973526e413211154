"""`hold: never` leaves the log that there was before any conversation was held."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table

from litellm_messplus.brain.holds import Holds
from litellm_messplus.brain.line_log import LineLog
from litellm_messplus.serving.plugin import MessplusPlugin
from litellm_messplus.serving.repeating import Explorer
from litellm_messplus.store.tables import calls, labels, requests
from tests.serving.test_holds import Agent, holding
from tests.support.builders import label
from tests.support.in_process import brain_of, written

OF_CONVERSATIONS = {"conversation", "line", "prefix", "turn", "hold"}
OF_THE_RUN = {
    *("request_id", "call_id", "label_id", "litellm_call_id", "response_id"),
    *("created_at", "ended_at", "decision_seconds", "encode_seconds", "seconds"),
}
"""Random names, and times."""
TABLES = (requests, calls, labels)


class Failed:
    """What stands in place of all that knows conversations: nothing may ask it."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        raise AssertionError("the conversations' code was asked")


async def serve(plugin: MessplusPlugin, folder: Path) -> None:
    """Some agents in turn: tool loops, people who go on, trouble, and verdicts."""
    agents = [Agent(plugin) for _ in range(6)]
    for place, agent in enumerate(agents):
        agent.person(f"Of agent {place}.")
    for turn in range(1, 7):
        for place, agent in enumerate(agents):
            await agent.ask()
            await brain_of(plugin.parts).journal.flush()
            if turn % 3 == 0:
                agent.person(f"Now write the documentation of part {turn}, please.")
            else:
                agent.result("Error: no such file" if place % 2 else "done")
            (*_, newest) = await written(folder, requests)
            if turn % 2:
                value = float((turn + place) % 3 > 0)
                brain_of(plugin.parts).journal.write(label(newest.request_id, value))
                await brain_of(plugin.parts).journal.flush()


async def told(folder: Path, hold: str) -> list[tuple[Table, Sequence[dict[str, Any]]]]:
    """All rows, without the names and times of the run."""
    async with holding(folder, hold) as plugin:
        await serve(plugin, folder)
    return [(each, await _rows(folder, each)) for each in TABLES]


async def _rows(folder: Path, table: Table) -> list[dict[str, Any]]:
    rows = [vars(row) for row in await written(folder, table)]
    return [
        {name: str(value) for name, value in row.items() if name not in OF_THE_RUN} for row in rows
    ]


async def test_a_whole_log_is_the_same_as_without_the_code_of_conversations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Explorer, "start", lambda *given: None)  # there are no models to call
    for name in ("never", "held", "without"):
        (tmp_path / name).mkdir()
    never = await told(tmp_path / "never", "never")
    held = await told(tmp_path / "held", "warm")
    for name in ("standing", "_standing", "_ended", "begin"):
        monkeypatch.setattr(Holds, name, Failed())
    for name in ("begin", "start"):
        monkeypatch.setattr(LineLog, name, lambda *given: None)
    monkeypatch.setattr(Holds, "standing", lambda *given: None)
    without = await told(tmp_path / "without", "warm")

    for (table, rows), (_, same) in zip(never, without, strict=True):
        assert len(rows) >= 18, table.name
        assert rows == same, table.name
    (_, asked), *_ = never
    assert {row[name] for row in asked for name in OF_CONVERSATIONS} == {"None"}
    (_, others), *_ = held
    assert asked != others, "the same though held: nothing was tested"
