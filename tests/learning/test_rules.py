"""Whose label counts first, as the workers of a proxy write it down at their start."""

import asyncio
from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.learning.projections import rules_of, save_rules
from litellm_messplus.runtime.vocabulary import PRECEDENCE, LabelKind


async def written(database: AsyncEngine) -> Any:
    async with database.connect() as connection:
        return await rules_of(connection)


async def test_workers_that_start_together_write_one_rule(database: AsyncEngine) -> None:
    await asyncio.gather(*(save_rules(database, {"zoo": PRECEDENCE}) for _ in range(4)))
    assert await written(database) == {"zoo": list(PRECEDENCE)}


async def test_a_zoo_that_is_not_named_keeps_its_rule(database: AsyncEngine) -> None:
    await save_rules(database, {"zoo": PRECEDENCE, "other": (LabelKind.JUDGE,)})
    await save_rules(database, {"zoo": (LabelKind.CHECK,)})
    assert await written(database) == {"zoo": ["check"], "other": ["judge"]}


async def test_they_take_turns_on_postgres_too(database: AsyncEngine) -> None:
    """The head of the log is locked before the old rule is looked at."""
    sent: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        sent.append(" ".join(statement.split()[:3]))

    event.listen(database.sync_engine, "before_cursor_execute", note)
    await save_rules(database, {"zoo": PRECEDENCE})
    assert sent == ["UPDATE log_head SET"] * 2
