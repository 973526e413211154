"""The log folded from its beginning, step by step, for others to look at on the way."""

from collections.abc import AsyncIterator, Mapping

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.engine import Engine
from litellm_messplus.errors import MessplusError
from litellm_messplus.learning.entries import Entry
from litellm_messplus.restore import begin
from litellm_messplus.store import base, log
from litellm_messplus.store.entries import PAGE, read_entries


class UnreadableLogError(MessplusError):
    """A row of the log cannot be read as the entry that it should be."""


SHOWN = 3
"""Entries that could not be folded in, and are kept to be named."""


class Fold:
    """Fresh engines, and how far they have come. What cannot be folded in is passed over, as the
    proxy does, and counted in ``failed``; the first few are in ``failures``. ``begins`` says where
    each zoo's fold goes on, once the log was pruned."""

    def __init__(self, database: AsyncEngine, engines: Mapping[str, Engine]) -> None:
        self.engines = engines
        self.position = 0
        self.begins: dict[str, int] = {}
        self.failed = 0
        self.failures: list[str] = []
        self._database = database

    async def begin(self) -> None:
        """Bring each engine to where the log of its zoo begins. Raises ConfigurationError where a
        base does not fit the configuration."""
        start = (await log.ends(self._database)).start
        for name, engine in self.engines.items():
            self.begins[name] = begin(engine, await base.read(self._database, name), start)
        self.position = min(self.begins.values(), default=0)

    async def to(self, position: int) -> AsyncIterator[Entry]:
        """Fold on up to there; gives each entry of these zoos once it is folded in. Raises
        UnreadableLogError."""
        async for entry in self._entries(position):
            engine = self.engines.get(entry.zoo)
            if engine is None or entry.position <= self.begins.get(entry.zoo, 0):
                continue
            try:
                engine.apply(entry)
            except Exception as error:
                self._failed(entry, error)
            yield entry
        self.position = max(self.position, position)

    async def _entries(self, upto: int) -> AsyncIterator[Entry]:
        seen = self.position
        try:
            async for entry in read_entries(self._database, self.position, upto):
                seen = entry.position
                yield entry
        except (ValueError, TypeError, KeyError) as error:
            raise UnreadableLogError(
                f"a row at one of the positions {seen + 1} to {min(seen + PAGE, upto)} is no entry "
                f"of the log ({type(error).__name__}: {error})"
            ) from error

    def _failed(self, entry: Entry, error: Exception) -> None:
        self.failed += 1
        if len(self.failures) < SHOWN:
            words = " ".join(str(error).split())[:100]
            kind = type(entry).__name__
            self.failures.append(f"{kind} at {entry.position}: {type(error).__name__} {words}")
