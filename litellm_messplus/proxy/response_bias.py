"""How much a user's word weighs where unsatisfied users answer more often, or less."""

import asyncio
from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.counters import Counters
from litellm_messplus.labels.response_bias import cautious, estimate
from litellm_messplus.proxy.background import Background
from litellm_messplus.routing.aim import label_weight
from litellm_messplus.settings.schema import AUDIT, MessplusSettings
from litellm_messplus.store.response_bias import audits

LOOK_SECONDS = 10.0
"""Between two looks at what the judge has graded since: labels keep the weight they were given, so
an estimate that is late costs."""


class ResponseBias:
    """As the operator states it, or as an audit shows it: who stays silent of those whose answers
    the judge saw. Until that has an estimate, the bias is 1. It is part of a label's weight from
    the moment when it is written, so that whoever reads the log counts alike."""

    def __init__(
        self, settings: MessplusSettings, database: AsyncEngine, counters: Counters
    ) -> None:
        self._audited = {name for name, zoo in settings.zoos.items() if zoo.response_bias == AUDIT}
        self._stated = {
            name: zoo.response_bias
            for name, zoo in settings.zoos.items()
            if not isinstance(zoo.response_bias, str)
        }
        self._database = database
        self._counters = counters
        self._estimated: Mapping[tuple[str, str], float] = {}
        self._background = Background()

    def feedback_weight(self, zoo: str, level: str, value: float) -> float:
        """What a user's label of that value weighs."""
        bias = self._stated.get(zoo, self._estimated.get((zoo, level), 1.0))
        return label_weight(value, bias)

    def start(self) -> None:
        """Begin looking at the log where there is an audit, in the running event loop."""
        if self._audited:
            self._background.start(self._watch(), "messplus-response-bias")

    async def close(self) -> None:
        """Stop looking."""
        await self._background.close()

    async def look(self) -> None:
        """Take the estimates of now."""
        async with self._database.connect() as connection:
            found = await audits(connection)
        self._estimated = {
            (zoo, level): cautious(estimate(audit))
            for (zoo, level), audit in found.items()
            if zoo in self._audited
        }

    async def _watch(self) -> None:
        while True:
            try:
                await self.look()
            except Exception:
                self._counters.failure("audit_failures", "the response bias was not estimated")
            await asyncio.sleep(LOOK_SECONDS)
