"""What an ended call used and cost: as measured, else as counted, else as estimated before."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from litellm_messplus.costs.price import CostUnit
from litellm_messplus.costs.usage import Usage
from litellm_messplus.counters import Counters
from litellm_messplus.proxy.dollars import is_free
from litellm_messplus.proxy.prices import DeploymentPrice
from litellm_messplus.proxy.usage import AbsurdUsageError, counted_usage, read_usage
from litellm_messplus.records import CostSource, RequestRecord
from litellm_messplus.zoo import Zoo


@dataclass(frozen=True, slots=True)
class Served:
    """Who answered: the candidate, None outside the zoo, and LiteLLM's id of the deployment."""

    candidate: str | None
    deployment: str | None


@dataclass(frozen=True, slots=True)
class Reading:
    """What LiteLLM says of a call: the usage in the words of any API, the answer's text, what
    LiteLLM charges in USD, and how long it took. None or zero where it does not know. Of a
    streamed answer without usage, LiteLLM counts the tokens itself and does not say so."""

    usage: object
    answer: str
    dollars: float | None
    seconds: float | None
    is_stream: bool = False


@dataclass(frozen=True, slots=True)
class Metered:
    """``cost`` in the zoo's unit; None where nobody knows, which is not zero."""

    usage: Usage | None
    cost: float | None
    source: CostSource


class Meter:
    """``deployment_prices`` holds the price of each deployment by LiteLLM's id; ``price_factor``
    gives what it is multiplied by where we take it on tokens."""

    def __init__(
        self,
        zoos: Mapping[str, Zoo],
        deployment_prices: Mapping[str, DeploymentPrice],
        counters: Counters,
        price_factor: Callable[[str], float] = lambda deployment_id: 1.0,
    ) -> None:
        self._zoos = zoos
        self._deployment_prices = deployment_prices
        self._counters = counters
        self._price_factor = price_factor
        self._silent: set[str | None] = set()
        """Deployments whose last whole answer came without usage."""

    def read(self, record: RequestRecord, served: Served, reading: Reading) -> Metered:
        """Of an answer that came; readings that cannot be are dropped and counted."""
        try:
            usage, dollars = read_usage(reading.usage), self._dollars(reading)
        except AbsurdUsageError as error:
            self._counters.failure("absurd_usages", f"an endpoint reported {error}")
            usage, dollars = None, None  # which LiteLLM computed from the same usage
        else:
            usage = self._reported(served, reading, usage)
        usage = usage or counted_usage(record.prompt_characters, reading.answer)
        cost, source = self._cost(record, served, usage, dollars, reading.seconds)
        return Metered(usage, cost, source)

    def _reported(self, served: Served, reading: Reading, usage: Usage | None) -> Usage | None:
        """The usage of a stream is LiteLLM's own count where the endpoint reports none."""
        if reading.is_stream:
            if usage is not None and served.deployment in self._silent:
                return replace(usage, is_counted=True)
            return usage
        if usage is None:
            self._silent.add(served.deployment)
        else:
            self._silent.discard(served.deployment)
        return usage

    def _dollars(self, reading: Reading) -> float | None:
        """None for LiteLLM's zero too: it says zero of what it has no price for."""
        dollars = reading.dollars or 0.0
        if not 0.0 <= dollars < math.inf:
            self._counters.failure("absurd_costs", f"LiteLLM said {dollars} USD of one call")
            return None
        return dollars or None

    def _cost(
        self,
        record: RequestRecord,
        served: Served,
        usage: Usage | None,
        dollars: float | None,
        seconds: float | None,
    ) -> tuple[float | None, CostSource]:
        zoo = self._zoos[record.zoo]
        known = self._price(zoo, served)
        if known is None:
            return _cost_outside(zoo, served, usage, dollars)
        if dollars is not None and known.per_dollar is not None:
            return dollars * known.per_dollar + known.price.request, _source(usage)
        if usage is not None:
            cost = known.price.of(
                usage.prompt_tokens,
                usage.completion_tokens,
                cached_tokens=usage.cached_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                seconds=seconds or 0.0,
            )
            return cost * self._price_factor(served.deployment or ""), _source(usage)
        estimated = record.estimated_cost.get(served.candidate or "")
        if estimated is not None:
            return estimated, CostSource.ESTIMATED
        return None, CostSource.UNKNOWN

    def _price(self, zoo: Zoo, served: Served) -> DeploymentPrice | None:
        """The deployment's own, else its candidate's. One of another zoo counts in its unit."""
        if served.candidate is None:
            return None
        found = self._deployment_prices.get(served.deployment or "")
        if found is not None:
            return found
        price = zoo.prices.get(served.candidate)
        if price is None:
            return None
        return DeploymentPrice(price, 1.0 if zoo.settings.cost_unit is CostUnit.USD else None)


def _source(usage: Usage | None) -> CostSource:
    is_counted = usage is not None and usage.is_counted
    return CostSource.COUNTED if is_counted else CostSource.MEASURED


def _cost_outside(
    zoo: Zoo, served: Served, usage: Usage | None, dollars: float | None
) -> tuple[float | None, CostSource]:
    """Of a fallback outside the zoo, whose price only LiteLLM knows."""
    if dollars is None:
        if usage is not None and served.deployment is not None and is_free(served.deployment):
            return 0.0, CostSource.MEASURED
        return None, CostSource.UNKNOWN
    if zoo.settings.cost_unit is CostUnit.USD:
        return dollars, CostSource.MEASURED
    if zoo.settings.electricity is None:
        return None, CostSource.UNKNOWN
    return dollars / zoo.settings.electricity.dollars_per_joule, CostSource.MEASURED
