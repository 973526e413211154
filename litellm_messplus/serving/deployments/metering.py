"""The usage and cost of an ended call: measured, else counted, else as estimated before it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import tiktoken

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.costs.price import CostUnit, Usage
from litellm_messplus.records import RequestRecord
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.vocabulary import CostSource
from litellm_messplus.serving.deployments.deployment import Deployment, candidate_of
from litellm_messplus.serving.deployments.prices import DeploymentPrice, is_free, model_and_provider
from litellm_messplus.serving.litellm_seam import bundled_encoding
from litellm_messplus.serving.surfaces.answers import AbsurdUsageError, counted_usage, read_usage
from litellm_messplus.settings.zoo import Zoo


@dataclass(frozen=True, slots=True)
class Served:
    """The candidate that answered, None outside the zoo, and LiteLLM's id of the
    deployment."""

    candidate: str | None
    deployment: str | None


@dataclass(frozen=True, slots=True)
class ReportedCall:
    """LiteLLM's report of a call: the usage in the format of any API, the answer's text, LiteLLM's
    charge in USD, and the duration. None or zero if unknown. For a streamed answer without usage,
    LiteLLM counts the tokens itself and does not say so."""

    usage: object
    answer: str
    dollars: float | None
    seconds: float | None
    is_stream: bool = False


@dataclass(frozen=True, slots=True)
class Metered:
    """The usage and cost of a call, and what ``largest``, the request's baseline, charges for the
    same tokens: as many of them cached, and written to the cache, as in this call. In the zoo's
    unit, None (not zero) if unknown."""

    usage: Usage | None
    cost: float | None
    source: CostSource
    largest: float | None = None


@dataclass(eq=False, repr=False)
class Meter:
    """The meter of calls. ``deployment_prices`` holds the price of each deployment by LiteLLM's
    id."""

    zoos: Mapping[str, Zoo]
    deployment_prices: Mapping[str, DeploymentPrice]
    counters: Counters

    def __post_init__(self) -> None:
        self._silent: set[str | None] = set()
        """Deployments whose last non-streamed answer came without usage."""

    def read(self, record: RequestRecord, served: Served, reading: ReportedCall) -> Metered:
        """Meter an answer; impossible readings are dropped and counted."""
        try:
            usage, dollars = read_usage(reading.usage), self._dollars(reading)
        except AbsurdUsageError as error:
            self.counters.failure("absurd_usages", f"an endpoint reported {error}")
            usage, dollars = None, None  # which LiteLLM computed from the same usage
        else:
            usage = self._reported(served, reading, usage)
        usage = usage or counted_usage(record.prompt_characters, reading.answer)
        cost, source = self._cost(record, served, usage, dollars, reading.seconds)
        price = self.zoos[record.zoo].prices.get(record.largest)
        # Not by the second: how long it would have taken, only the estimate tells.
        largest = price.of_usage(usage) if usage and price and not price.second else None
        return Metered(usage, cost, source, largest)

    def _reported(self, served: Served, reading: ReportedCall, usage: Usage | None) -> Usage | None:
        """Return the usage, marked as LiteLLM's own count if the endpoint of a stream reports
        none."""
        if reading.is_stream:
            if usage is not None and served.deployment in self._silent:
                return replace(usage, is_counted=True)
            return usage
        if usage is None:
            self._silent.add(served.deployment)
        else:
            self._silent.discard(served.deployment)
        return usage

    def _dollars(self, reading: ReportedCall) -> float | None:
        """Return the dollars; None for LiteLLM's zero too, which it reports if it has no price."""
        dollars = reading.dollars or 0.0
        if not 0.0 <= dollars < math.inf:
            self.counters.failure("absurd_costs", f"LiteLLM said {dollars} USD of one call")
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
        zoo = self.zoos[record.zoo]
        known = self._price(zoo, served)
        if known is None:
            return _cost_outside(zoo, served, usage, dollars)
        if dollars is not None and known.per_dollar is not None:
            return dollars * known.per_dollar + known.price.request, _source(usage)
        if usage is not None:
            return known.price.of_usage(usage, seconds or 0.0), _source(usage)
        estimated = record.estimated_cost.get(served.candidate or "")
        if estimated is not None:
            return estimated, CostSource.ESTIMATED
        return None, CostSource.UNKNOWN

    def _price(self, zoo: Zoo, served: Served) -> DeploymentPrice | None:
        """Return the deployment's own price, else its candidate's. That of another zoo's deployment
        is in that zoo's unit."""
        if served.candidate is None:
            return None
        found = self.deployment_prices.get(served.deployment or "")
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
    """Return the cost of a fallback outside the zoo, whose price is known to LiteLLM only."""
    if dollars is None:
        if usage is not None and served.deployment is not None and is_free(served.deployment):
            return 0.0, CostSource.MEASURED
        return None, CostSource.UNKNOWN
    cost = zoo.settings.of_dollars(dollars)
    return cost, CostSource.UNKNOWN if cost is None else CostSource.MEASURED


# The tokens of a prompt, counted if LiteLLM bundles the model's own tokenizer.

BUNDLED = frozenset({"cl100k_base", "o200k_base"})
"""Encodings bundled with LiteLLM; any other would be downloaded."""
PROVIDERS = frozenset({"openai", "azure", "text-completion-openai"})
LONGEST = 4_000
"""Most characters of a prompt whose tokens are counted, in 0.2 ms at most; for longer ones the
length is accurate enough, and counting would take longer than deciding."""
TOKENS_PER_TURN = 4
"""Tokens that a chat format adds to each message."""


class PromptTokens:
    """The tokenizers of the candidates of every zoo; candidates without a bundled one are left
    out."""

    def __init__(self, zoos: Sequence[str], model_list: Sequence[Deployment]) -> None:
        self._encodings: dict[str, dict[str, str]] = {name: {} for name in zoos}
        for deployment in model_list:
            encoding = _encoding_name(deployment)
            known = self._encodings.get(str(deployment.get("model_name")))
            if known is not None and encoding is not None:
                known[candidate_of(deployment)] = encoding

    def warm_up(self) -> None:
        """Load the encodings in use: the first use of one takes about a second."""
        for name in {name for known in self._encodings.values() for name in known.values()}:
            bundled_encoding(name)

    def count(self, zoo: str, conversation: Conversation) -> Mapping[str, int]:
        """Count tokens by candidate; empty for a prompt that is too long to be counted in time."""
        known, text = self._encodings[zoo], conversation.text
        if not known or len(text) > LONGEST:
            return {}
        extra = TOKENS_PER_TURN * len(conversation.turns)
        counted = {
            name: len(bundled_encoding(name).encode_ordinary(text)) + extra
            for name in set(known.values())
        }
        return {candidate: counted[name] for candidate, name in known.items()}


def _encoding_name(deployment: Deployment) -> str | None:
    """Name the encoding; None for a model that is not OpenAI's, or whose tokenizer is not in
    LiteLLM's package."""
    try:
        model, provider = model_and_provider(deployment)
        name = tiktoken.encoding_name_for_model(model)
    except Exception:  # LiteLLM and tiktoken raise for unknown models
        return None
    return name if provider in PROVIDERS and name in BUNDLED else None
