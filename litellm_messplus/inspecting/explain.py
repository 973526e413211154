"""Why one request was served as it was: from its logged rows alone, every number as logged."""

from dataclasses import dataclass
from typing import Any

from litellm_messplus.inspecting.envelope import PriceRange, envelope, range_at
from litellm_messplus.inspecting.logged import Logged
from litellm_messplus.inspecting.prompt_words import Trait, standing_out, traits


@dataclass(frozen=True, slots=True)
class Candidate:
    """What was expected of a candidate; ``score`` is cost - price * satisfaction, where there is a
    price. ``is_best`` is by the logged numbers, ``is_chosen`` by the router."""

    candidate: str
    cost: float
    satisfaction: float
    score: float | None
    is_chosen: bool
    is_best: bool

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Explanation:
    """A logged request, and what follows from it."""

    logged: Logged
    candidates: tuple[Candidate, ...]
    prices: tuple[PriceRange, ...]
    now: PriceRange | None

    @property
    def traits(self) -> list[Trait]:
        """What stands out in the prompt; empty where its numbers are not known."""
        return [] if self.logged.surface is None else standing_out(self.logged.surface)

    def counts(self, label: Any) -> bool | None:
        """Whether this label counts; None where that is not known."""
        if label["label_id"] in self.logged.counting:
            return True
        is_served = label["call_id"] == f"{label['request_id']}.0"
        return False if is_served or self.logged.knows_unseen else None

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON, numbers as logged."""
        logged = self.logged
        numbers = None if logged.surface is None else traits(logged.surface)
        return {
            "request": dict(logged.request),
            "outcome": dict(logged.outcome),
            "calls": [dict(call) for call in logged.calls],
            "labels": [{**label, "counts": self.counts(label)} for label in logged.labels],
            "candidates": [each.as_dict() for each in self.candidates],
            "prices": [each.as_dict() for each in self.prices],
            "now": None if self.now is None else self.now.as_dict(),
            "prompt": {
                "numbers": None if numbers is None else {each.name: each.value for each in numbers},
                "stands_out": [each.words for each in self.traits],
                "note": logged.surface_note,
            },
        }


def explain(logged: Logged) -> Explanation:
    """Work out what the logged rows say."""
    request = logged.request
    satisfaction = request["estimated_satisfaction"]
    cost = {
        name: value for name, value in request["estimated_cost"].items() if name in satisfaction
    }
    price = request["price"]
    prices = envelope(cost, satisfaction)
    now = None if price is None else range_at(prices, price)
    candidates = tuple(
        Candidate(
            name,
            cost[name],
            satisfaction[name],
            None if price is None else cost[name] - price * satisfaction[name],
            name == request["chosen"],
            now is not None and name == now.candidate,
        )
        for name in cost
    )
    return Explanation(logged, candidates, prices, now)
