"""Calls that other workers on the same database have served, read from the log."""

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.ended_calls import EndedCall, ended_calls


class OtherWorkers:
    """``position``: where in the log to begin. Other workers' are the calls that `exclude` was not
    told of before they were in the log."""

    def __init__(self, database: AsyncEngine, position: int) -> None:
        self._database = database
        self._position = position
        self._own: set[str] = set()

    def begin_at(self, position: int) -> None:
        """Calls up to there are no news."""
        self._position = position

    def exclude(self, call_id: str) -> None:
        """This worker made that call."""
        self._own.add(call_id)

    async def ended_calls(self) -> list[EndedCall]:
        """Those since the last time. Raises SQLAlchemyError where the log does not answer."""
        logged = await ended_calls(self._database, self._position)
        if logged:
            self._position = logged[-1].position
        others = [each.call for each in logged if each.call_id not in self._own]
        self._own.difference_update(each.call_id for each in logged)
        return others
