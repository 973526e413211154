"""What users have said of one call so far."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.label_kind import LabelKind
from litellm_messplus.store.rows import storable
from litellm_messplus.store.tables import labels


@dataclass(frozen=True, slots=True)
class CallVerdicts:
    """``given`` is how many there are, no more than were asked for. The newest one's value, weight
    and comment; and the value and time of the one that counts, where one does."""

    given: int
    value: float | None = None
    weight: float | None = None
    comment: str | None = None
    counting: float | None = None
    counted_at: datetime | None = None

    def say(self, value: float, comment: str | None) -> bool:
        """Whether the newest says just that; a comment that is left out says nothing else."""
        return value == self.value and (comment is None or storable(comment) == self.comment)


async def call_verdicts(engine: AsyncEngine, call_id: str, most: int) -> CallVerdicts:
    """The feedback on a call, the newest ``most`` of it.

    Raises SQLAlchemyError where the database does not answer.
    """
    columns = (labels.c.value, labels.c.weight, labels.c.created_at)
    of_call = (labels.c.call_id == call_id, labels.c.source == LabelKind.FEEDBACK)
    newest = labels.c.position.desc()
    query = select(*columns).where(*of_call).order_by(newest).limit(most)
    async with engine.connect() as connection:
        rows = (await connection.execute(query)).all()
        if not rows:
            return CallVerdicts(0)
        said = select(labels.c.comment).where(*of_call).order_by(newest).limit(1)
        comment = (await connection.execute(said)).scalar_one()
    counting = next((row for row in rows if row.weight > 0.0), None)
    return CallVerdicts(
        given=len(rows),
        value=rows[0].value,
        weight=rows[0].weight,
        comment=comment,
        counting=None if counting is None else counting.value,
        counted_at=None if counting is None else counting.created_at,
    )
