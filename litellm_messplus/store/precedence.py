"""Whose label counts first, written down at the start so that SQL sees the rule of the fold."""

from collections.abc import Mapping, Sequence

from sqlalchemy import delete, insert, update
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.label_kind import LabelKind
from litellm_messplus.store.tables import label_precedence, log_head


async def save(engine: AsyncEngine, precedence: Mapping[str, Sequence[LabelKind]]) -> None:
    """Replace the rule of every given zoo: its kinds that count, the strongest first.

    Workers that start together take turns, as writers of the log do: on Postgres none sees the rows
    that another has just put in the place of those that both replace.
    """
    rows = [
        {"zoo": zoo, "kind": kind, "rank": kinds.index(kind) + 1 if kind in kinds else None}
        for zoo, kinds in precedence.items()
        for kind in LabelKind
    ]
    async with engine.begin() as connection:
        await connection.execute(update(log_head).values(position=log_head.c.position))
        await connection.execute(
            delete(label_precedence).where(label_precedence.c.zoo.in_(list(precedence)))
        )
        await connection.execute(insert(label_precedence), rows)
