"""What a worker has to report of the models that its router shows, against what the log says.

Workers take LiteLLM's changes over at different times, up to half a minute apart, so a difference
between a router and the log is no news by itself: the log may know better. A worker reports what
has changed in its own router, at once. Any other difference it reports when it has lasted: a
candidate that its router shows all the time is there, whatever somebody said; one that it never
showed since the start is gone, which is said once, for another worker may know better.
"""

from collections.abc import Mapping

from litellm_messplus.costs.price import Price
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.state.catalog import Catalog
from litellm_messplus.vocabulary import Change

LASTING_SECONDS = 90.0
"""Three times as long as LiteLLM takes, unless told otherwise, to bring its models to all
workers."""


class Reports:
    """The reports of one zoo by one worker."""

    def __init__(self) -> None:
        self._shown: dict[str, Price] | None = None
        self._changed: set[str] = set()
        self._since: dict[str, float] = {}
        self._given_up: set[str] = set()

    def saw(self, prices: Mapping[str, Price]) -> None:
        """Take note of the candidates that the router shows, at their prices."""
        before = {} if self._shown is None else self._shown
        names = prices.keys() | before.keys()
        self._changed |= {name for name in names if prices.get(name) != before.get(name)}
        self._shown = dict(prices)

    def due(
        self, zoo: Zoo, catalog: Catalog, logged: Mapping[str, Price], now: float
    ) -> dict[str, Change]:
        """Return what is to be reported now; ``logged`` are the prices that the log says. Asked
        until the log agrees."""
        if self._shown is None:
            return {}
        found = self._differences(zoo, catalog, logged)
        self._changed &= found.keys()
        self._given_up &= set(zoo.candidates) - self._shown.keys()
        self._since = {name: self._since.get(name, now) for name in found}
        due = {name: change for name, change in found.items() if self._is_due(name, change, now)}
        self._given_up |= {name for name, change in due.items() if change is Change.GONE}
        return due

    def _differences(
        self, zoo: Zoo, catalog: Catalog, logged: Mapping[str, Price]
    ) -> dict[str, Change]:
        shown = self._shown or {}
        found = {}
        for name, price in shown.items():
            if name in catalog.left_out:
                continue
            is_untold = not zoo.has_anchor and name not in catalog.standings
            if name not in zoo.present or is_untold:
                found[name] = Change.APPEARED
            elif logged.get(name) != price:
                found[name] = Change.PRICED
        return found | {name: Change.GONE for name in zoo.present if name not in shown}

    def _is_due(self, name: str, change: Change, now: float) -> bool:
        if name in self._changed:
            return True
        if change is Change.PRICED or name in self._given_up:
            return False
        return now - self._since[name] >= LASTING_SECONDS
