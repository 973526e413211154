"""Whose label counts first, as the workers of a proxy write it down at their start."""

import asyncio
from typing import Any

from sqlalchemy import event, select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.learning.projections import save_rules
from litellm_messplus.runtime.vocabulary import PRECEDENCE, LabelKind
from litellm_messplus.store.tables import label_precedence


async def written(database: AsyncEngine) -> dict[str, int | None]:
    async with database.connect() as connection:
        found = await connection.execute(select(label_precedence))
        return {row.kind: row.rank for row in found}


async def test_workers_that_start_together_write_one_rule(database: AsyncEngine) -> None:
    await asyncio.gather(*(save_rules(database, {"zoo": PRECEDENCE}) for _ in range(4)))
    assert await written(database) == {
        kind: rank for rank, kind in enumerate(PRECEDENCE, start=1)
    } | {kind: None for kind in LabelKind if kind not in PRECEDENCE}


async def test_they_take_turns_on_postgres_too(database: AsyncEngine) -> None:
    """The head of the log is locked before the old rule is looked at; what two workers replace at
    once would be there twice, which ends the start of one."""
    sent: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        sent.append(" ".join(statement.split()[:3]))

    event.listen(database.sync_engine, "before_cursor_execute", note)
    await save_rules(database, {"zoo": PRECEDENCE})
    assert sent == [
        "UPDATE log_head SET",
        "SELECT label_precedence.zoo, label_precedence.kind,",
        "DELETE FROM label_precedence",
        "INSERT INTO label_precedence",
    ]
