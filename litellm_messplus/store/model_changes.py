"""Models that were found to have changed: since when, and by how much."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.core.predictor import Predictor
from litellm_messplus.core.snapshot import predictor_of
from litellm_messplus.figures.words import percent
from litellm_messplus.store.tables import snapshots

NEW = timedelta(days=1)
"""How long after it was found a change is shown."""


@dataclass(frozen=True, slots=True)
class ModelChange:
    """The newest change of a model: ``since`` the first label after it, ``found`` at the alarm. The
    share satisfied was ``before``, and is ``after`` over ``labels``, the weight of those since."""

    zoo: str
    candidate: str
    since: datetime
    found: datetime
    before: float
    after: float
    labels: float

    def is_new(self, now: datetime) -> bool:
        """Return whether it was found in the last day."""
        return now - self.found < NEW

    @property
    def is_fall(self) -> bool:
        return self.after < self.before

    @property
    def words(self) -> str:
        """The change for people, in UTC; with the date if it was not found on the same day."""
        form = "%H:%M" if self.since.date() == self.found.date() else "%Y-%m-%d %H:%M"
        after, before = percent(self.after, 0), percent(self.before, 0)
        answers = f"{self.candidate} seems to answer {'worse' if self.is_fall else 'better'}"
        return f"{answers}: {after} satisfied since {self.since:{form}}, {before} before"


def changes_of(zoo: str, predictor: Predictor) -> list[ModelChange]:
    """List the newest change of each model that has changed, by what a predictor knows."""
    tested = zip(predictor.candidates, predictor.changes, predictor.means, strict=True)
    return [
        ModelChange(
            zoo,
            name,
            datetime.fromtimestamp(test.change.since, UTC),
            datetime.fromtimestamp(test.change.found, UTC),
            test.change.before,
            min(max(mean.total / mean.weight, 0.0), 1.0),
            mean.weight,
        )
        for name, test, mean in tested
        if test.change is not None
    ]


async def newest_predictors(
    connection: AsyncConnection, zoo: str | None = None
) -> dict[str, Predictor | None]:
    """Read what each zoo, or the one named, has learned from its newest snapshot; None where that
    is of another policy or version."""
    own, same = snapshots.c, snapshots.alias().c
    newest = select(func.max(same.position)).where(same.zoo == own.zoo).scalar_subquery()
    query = select(own.zoo, own.state).where(own.position == newest).order_by(own.position)
    if zoo is not None:
        query = query.where(own.zoo == zoo)
    found: dict[str, Predictor | None] = {}
    for row in await connection.execute(query):
        try:
            found[row.zoo] = predictor_of(row.state)
        except (ValueError, KeyError):  # an earlier version: the next start makes another
            found[row.zoo] = None
    return found


async def logged_changes(connection: AsyncConnection, zoo: str | None = None) -> list[ModelChange]:
    """Read the changes of all models, or of those of one zoo, from the newest snapshots."""
    known = await newest_predictors(connection, zoo)
    return [
        each
        for name, found in known.items()
        if found is not None
        for each in changes_of(name, found)
    ]
