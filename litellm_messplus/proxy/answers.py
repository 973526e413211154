"""Reading an answer, on any surface: its id, its text, its usage, its cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from litellm_messplus.costs.price import CostUnit, TokenPrice
from litellm_messplus.records import CostSource, RequestRecord
from litellm_messplus.zoo import Zoo


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that an endpoint reported."""

    prompt_tokens: int
    completion_tokens: int


class Pricing:
    """The cost of an ended call in its zoo's unit.

    ``deployment_prices`` holds the price of each deployment by LiteLLM's id.
    """

    def __init__(
        self, zoos: Mapping[str, Zoo], deployment_prices: Mapping[str, TokenPrice]
    ) -> None:
        self._zoos = zoos
        self._deployment_prices = deployment_prices

    def cost(
        self,
        record: RequestRecord,
        candidate: str | None,
        deployment: str | None,
        usage: Usage | None,
        response_cost: float | None,
    ) -> tuple[float | None, CostSource]:
        """Measured from reported usage, else estimated; unknown outside the zoo without a price.

        An answer without usage has a response cost of zero at LiteLLM: that is no measurement.
        """
        zoo = self._zoos[record.zoo]
        if usage is not None:
            if zoo.settings.cost_unit is CostUnit.USD and response_cost is not None:
                return response_cost, CostSource.MEASURED
            price = self._deployment_prices.get(deployment or "") or zoo.prices.get(candidate or "")
            if price is not None:
                return price.of(usage.prompt_tokens, usage.completion_tokens), CostSource.MEASURED
        estimated = record.estimated_cost.get(candidate or "")
        if estimated is not None:
            return estimated, CostSource.ESTIMATED
        return None, CostSource.UNKNOWN


def hidden_params(response: object) -> Mapping[str, Any]:
    """What LiteLLM keeps beside an answer; Anthropic messages are plain dictionaries."""
    if isinstance(response, Mapping):
        return response.get("_hidden_params") or {}
    return getattr(response, "_hidden_params", None) or {}


def response_id(response: object) -> str | None:
    """The `id` that the client gets with a whole answer."""
    found = _field(response, "id")
    return None if found is None else str(found)


def usage(response: object) -> Usage | None:
    """Tokens as reported, in the words of either API; None where none were, or only zeros."""
    reported = _field(response, "usage")
    prompt = _field(reported, "prompt_tokens") or _field(reported, "input_tokens") or 0
    completion = _field(reported, "completion_tokens") or _field(reported, "output_tokens") or 0
    return usage_of(prompt, completion)


def usage_of(prompt_tokens: int | None, completion_tokens: int | None) -> Usage | None:
    """None where both are zero: no call reads nothing."""
    if not prompt_tokens and not completion_tokens:
        return None
    return Usage(int(prompt_tokens or 0), int(completion_tokens or 0))


def text(response: object) -> str:
    """The words of an answer: of its first choice, or of its content blocks in order."""
    choices = _field(response, "choices")
    if choices:
        message = _field(choices[0], "message")
        return str(_field(message, "content") or _field(choices[0], "text") or "")
    blocks = _field(response, "output") or _field(response, "content") or []
    return "".join(_block_text(block) for block in blocks)


def _block_text(block: object) -> str:
    inner = _field(block, "content")
    if isinstance(inner, list):
        return "".join(_block_text(part) for part in inner)
    return str(_field(block, "text") or "")


def _field(value: object, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, None)
