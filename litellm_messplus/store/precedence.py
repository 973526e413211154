"""Whose label counts first, written down at the start so that SQL sees the rule of the fold."""

from collections.abc import Mapping, Sequence

from sqlalchemy import delete, insert
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.label_kind import LabelKind
from litellm_messplus.store.tables import label_precedence


async def save(engine: AsyncEngine, precedence: Mapping[str, Sequence[LabelKind]]) -> None:
    """Replace the rule of every given zoo: its kinds that count, the strongest first."""
    rows = [
        {"zoo": zoo, "kind": kind, "rank": kinds.index(kind) + 1 if kind in kinds else None}
        for zoo, kinds in precedence.items()
        for kind in LabelKind
    ]
    async with engine.begin() as connection:
        await connection.execute(
            delete(label_precedence).where(label_precedence.c.zoo.in_(list(precedence)))
        )
        await connection.execute(insert(label_precedence), rows)
