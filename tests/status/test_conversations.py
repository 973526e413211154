"""The status says how long conversations are, what they cost, what holds them and what was lost."""

from collections.abc import Sequence
from typing import Any

import pytest
from rich.console import Console
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import Record
from litellm_messplus.status import newest
from litellm_messplus.status.build import read_status
from litellm_messplus.status.render import render
from litellm_messplus.store import log
from tests.support.builders import LARGE, SMALL, exploration_call, request, served_call


def conversation(
    name: str, served: Sequence[str], holds: Sequence[str | None], **changed: Any
) -> list[Record]:
    """One line of turns, each at a cost of 5."""
    found: list[Record] = []
    for turn, (candidate, hold) in enumerate(zip(served, holds, strict=True), 1):
        own = name if turn == 1 else f"{name}-{turn}"
        place = {"conversation": name, "line": name, "prefix": f"{own:0>32}", "turn": turn}
        found.append(request(own, hold=hold, **place, **changed))
        found.append(served_call(own, candidate=candidate))
    return found


async def test_turns_costs_switches_and_holds_are_of_the_newest_requests(
    database: AsyncEngine,
) -> None:
    await log.append(
        database,
        [
            *conversation("a", [SMALL] * 4, [None, "tool_loop", "warm", "state"]),
            *conversation("b", [SMALL, LARGE], [None, "trouble"]),
            *conversation("c", [SMALL, LARGE, LARGE], [None, "lost", "unknown"]),
            exploration_call("c", cost=1.0),
            request("alone"),
            served_call("alone"),
        ],
    )
    (found,) = (await read_status(database)).conversations
    assert (found.zoo, found.service_level) == ("zoo", "default")
    assert (found.requests, found.conversations, found.turns) == (9, 3, 3.0)
    assert found.cost == pytest.approx((9 * 5.0 + 1.0) / 3)
    assert found.switches == 2
    assert found.holds == dict.fromkeys(
        ("tool_loop", "warm", "state", "trouble", "lost", "unknown"), 1
    )
    assert found.held_share == pytest.approx(1 / 3)


async def test_a_conversation_that_began_before_is_no_shorter_one(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turns that are among the newest count by their holds alone."""
    monkeypatch.setattr(newest, "OF_EACH_LEVEL", 3)
    held: list[str | None] = [None, "warm"]
    records = [*conversation("a", [SMALL] * 2, held), *conversation("b", [SMALL] * 2, held)]
    await log.append(database, records)
    (found,) = (await read_status(database)).conversations
    assert (found.requests, found.conversations, found.turns, found.cost) == (3, 1, 2.0, 10.0)
    assert found.holds["warm"] == 2


async def test_the_order_in_which_workers_write_is_no_switch(database: AsyncEngine) -> None:
    """Two workers may write the steps of one loop in another order than that of the steps."""
    first, second, third = (
        conversation("a", [SMALL, SMALL, LARGE], [None, "tool_loop", "lost"])[2 * turn :][:2]
        for turn in range(3)
    )
    await log.append(database, [*third, *first, *second])
    (found,) = (await read_status(database)).conversations
    assert found.switches == 1
    async with database.connect() as connection:
        (row,) = (await connection.execute(text("SELECT switches FROM conversations"))).all()
    assert row.switches == 1


async def test_what_nobody_knows_is_not_zero(database: AsyncEngine) -> None:
    begun = conversation("a", [SMALL], [None])
    await log.append(database, [begun[0], served_call("a", cost=None)])
    (found,) = (await read_status(database)).conversations
    assert (found.turns, found.cost) == (1.0, None)


async def test_a_log_without_conversations_says_nothing_of_them(database: AsyncEngine) -> None:
    await log.append(database, [request("alone"), served_call("alone")])
    assert (await read_status(database)).conversations == ()


async def test_the_table_is_for_people(database: AsyncEngine) -> None:
    held: list[str | None] = [None, "tool_loop", "tool_loop", "lost"]
    await log.append(database, conversation("a", [SMALL] * 4, held))
    console = Console(width=200)
    with console.capture() as shown:
        console.print(render(await read_status(database)))
    (row,) = [line for line in shown.get().splitlines() if "50.0 % (2 tool_loop)" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "zoo, default", "1", "4", "20", "50.0 % (2 tool_loop)", "0", "0", "1", "0",
    ]  # fmt: skip
