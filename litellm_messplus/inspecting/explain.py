"""Explanation of how one request was served: from its logged rows, every number as logged."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from litellm_messplus.core.decision import Reason
from litellm_messplus.core.surface import NUMBERS, Number
from litellm_messplus.figures.words import figure, percent
from litellm_messplus.inspecting.logged import Logged

# The reason of a decision, in words.

WORDS: dict[str, str] = {
    Reason.AHEAD: "ahead of the promise",
    Reason.BEHIND: "to hold the promise",
    Reason.OUT_OF_REACH: "no candidate is expected to hold alpha: best value",
    Reason.UNLABELLED: "no label has come yet: the largest",
    Reason.PROBE: "probe",
    Reason.UNSEEN_PROBE: "probe in addition to the choice, unseen",
    Reason.NEWCOMER: "a new model is tried",
    Reason.UNSEEN_NEWCOMER: "a new model is tried in addition to the choice, unseen",
    Reason.FIRST_REQUEST: "first request",
    Reason.EXPLORATION: "exploration",
    Reason.NO_DEBT: "cheapest: no debt",
    Reason.LEAST_PENALTY: "least V*E - Q*s, by cost E, requests owed Q and satisfaction s",
    Reason.FORCED: "the only one that the gates left",
    Reason.HELD: "held: its conversation is there",
    Reason.TROUBLE: "the model before it got no further: a better one",
    Reason.NONE_HEALTHY: "no deployment is healthy",
    Reason.DEADLINE_MISSED: "the decision missed its deadline, and was not followed",
    Reason.UNDECIDED: "served as before; the choice was not worked out in time",
    Reason.OFF: "the client switched routing off for this request",
}
"""Each reason in words."""


def reason_in_words(reason: str) -> str:
    """Write a logged reason in words; one of another version is returned as it is logged."""
    return WORDS.get(reason, reason)


# The numbers that stand out in a prompt: those of its surface, as a person counts them.
#
# A number stands out by its share of the scale on which the heads read it (the last knot).

SHOWN = 8
DISTINCT = "share of different words"


@dataclass(frozen=True, slots=True)
class Trait:
    """A number of the prompt: ``value`` as logged, ``counted`` as a person counts it, ``share`` of
    its scale."""

    name: str
    value: float
    counted: float
    share: float

    @property
    def words(self) -> str:
        if self.is_share:
            return f"{self.name} {percent(self.counted, 0)}"
        if self.name == "JSON asked for":
            return self.name
        return f"{self.name} {figure(self.counted)}"

    @property
    def is_share(self) -> bool:
        return self.name.startswith("share")


def traits(surface: Sequence[float]) -> list[Trait]:
    """Return every number of a prompt, those that stand out most first."""
    found = [_trait(number, value) for number, value in zip(NUMBERS, surface, strict=True)]
    return sorted(found, key=lambda trait: -trait.share)


def standing_out(surface: Sequence[float]) -> list[Trait]:
    """Return the numbers above 0 that stand out most, without a share of distinct words of 1, which
    is normal in a short prompt."""
    found = [trait for trait in traits(surface) if trait.value > 0.0]
    return [trait for trait in found if (trait.name, trait.value) != (DISTINCT, 1.0)][:SHOWN]


def _trait(number: Number, value: float) -> Trait:
    is_share = number.name.startswith("share")
    # float32 of log2(1 + count): a whole count comes back as one within 6 digits.
    counted = value if is_share else float(f"{2.0**value - 1.0:.6g}")
    return Trait(number.name, value, counted, min(value / number.knots[-1], 1.0))


# Which candidate is best at which price: the lower envelope of cost - price * satisfaction.
#
# Each candidate is a line over the price. The walk is exact (fractions), so that a winner is never
# one by rounding.


@dataclass(frozen=True, slots=True)
class PriceRange:
    """The prices at which a candidate is the best: from ``low``, below ``high`` (None: no end)."""

    candidate: str
    low: Fraction
    high: Fraction | None

    def as_dict(self) -> dict[str, Any]:
        high = None if self.high is None else float(self.high)
        return {"candidate": self.candidate, "from": float(self.low), "to": high}


def envelope(
    cost: Mapping[str, float], satisfaction: Mapping[str, float]
) -> tuple[PriceRange, ...]:
    """Compute the ranges from price 0 upwards; a candidate that is never the best has none.

    Of two candidates that are equal at a price, the one with the higher satisfaction counts.
    """
    lines = {name: (Fraction(cost[name]), Fraction(satisfaction[name])) for name in cost}
    if not lines:
        return ()
    best = min(lines, key=lambda name: (lines[name][0], -lines[name][1]))
    low, ranges = Fraction(0), []
    while crossings := _crossings(lines, best):
        high, _, following = min(crossings)
        ranges.append(PriceRange(best, low, high))
        low, best = high, following
    return (*ranges, PriceRange(best, low, None))


def range_at(ranges: Sequence[PriceRange], price: float) -> PriceRange | None:
    """Find the range that contains a price; None for a price below 0, or without candidates."""
    exact = Fraction(price)
    reached = [each for each in ranges if each.low <= exact]
    return reached[-1] if reached else None


def _crossings(
    lines: Mapping[str, tuple[Fraction, Fraction]], best: str
) -> list[tuple[Fraction, Fraction, str]]:
    """List the prices from which each better candidate beats this one; of equal prices the best
    first."""
    cost, satisfaction = lines[best]
    return [
        ((other_cost - cost) / (other - satisfaction), -other, name)
        for name, (other_cost, other) in lines.items()
        if other > satisfaction
    ]


@dataclass(frozen=True, slots=True)
class Candidate:
    """The expected numbers of a candidate; ``score`` is cost - price * satisfaction if there is a
    price. ``is_best`` follows from the logged
    numbers, ``is_chosen`` from the router."""

    candidate: str
    cost: float
    satisfaction: float
    score: float | None
    is_chosen: bool
    is_best: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """A logged request, and what follows from it."""

    logged: Logged
    candidates: tuple[Candidate, ...]
    prices: tuple[PriceRange, ...]
    now: PriceRange | None

    @property
    def traits(self) -> list[Trait]:
        """The numbers that stand out in the prompt; empty if they are unknown."""
        return [] if self.logged.surface is None else standing_out(self.logged.surface)

    def counts(self, label: Any) -> bool | None:
        """Tell whether this label counts; None if that is unknown."""
        if label["label_id"] in self.logged.counting:
            return True
        is_served = label["call_id"] == f"{label['request_id']}.0"
        return False if is_served or self.logged.knows_unseen else None

    def as_dict(self) -> dict[str, Any]:
        """Return the same for JSON, numbers as logged."""
        logged = self.logged
        numbers = None if logged.surface is None else traits(logged.surface)
        return {
            "request": dict(logged.request),
            "outcome": dict(logged.outcome),
            "calls": [dict(call) for call in logged.calls],
            "labels": [{**label, "counts": self.counts(label)} for label in logged.labels],
            "candidates": [asdict(each) for each in self.candidates],
            "prices": [each.as_dict() for each in self.prices],
            "now": None if self.now is None else self.now.as_dict(),
            "prompt": {
                "numbers": None if numbers is None else {each.name: each.value for each in numbers},
                "stands_out": [each.words for each in self.traits],
                "note": logged.surface_note,
            },
        }


def explain(logged: Logged) -> Explanation:
    """Derive the explanation from the logged rows."""
    request = logged.request
    satisfaction = request["estimated_satisfaction"]
    cost = {
        name: value for name, value in request["estimated_cost"].items() if name in satisfaction
    }
    price, prices = request["price"], envelope(cost, satisfaction)
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
