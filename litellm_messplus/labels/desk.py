"""The label desk: shows each ended call to the sources of its zoo, whatever one of them does."""

import asyncio
from collections.abc import Mapping, Sequence

from litellm_messplus.counters import Counters
from litellm_messplus.labels.answered_call import AnsweredCall
from litellm_messplus.labels.source import LabelSource


class LabelDesk:
    """``sources`` by zoo; a zoo without any costs nothing."""

    def __init__(self, sources: Mapping[str, Sequence[LabelSource]], counters: Counters) -> None:
        self._sources = {zoo: tuple(found) for zoo, found in sources.items() if found}
        self._counters = counters

    def is_watched(self, zoo: str) -> bool:
        """Whether anybody wants to see the calls of a zoo."""
        return zoo in self._sources

    def ended(self, call: AnsweredCall) -> None:
        """Show a call to every source; returns at once."""
        for source in self._sources.get(call.asked.zoo, ()):
            try:
                source.ended(call)
            except Exception:
                self._failed(source)

    async def close(self) -> None:
        """Let every source finish."""
        every = [source for sources in self._sources.values() for source in sources]
        ended = await asyncio.gather(*(source.close() for source in every), return_exceptions=True)
        for source, result in zip(every, ended, strict=True):
            if isinstance(result, BaseException):
                self._failed(source, result)

    def _failed(self, source: LabelSource, error: BaseException | None = None) -> None:
        told = f": {error!r}" if error else ""
        self._counters.failure("label_failures", f"label source {source.name} failed{told}")
