"""What stands out in a prompt: the numbers of its surface, as a person counts them.

How far a number stands out is its share of the scale on which the heads read it (the last knot).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from litellm_messplus.prediction.surface import NUMBERS, Number

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
            return f"{self.name} {self.counted:.0%}"
        if self.name == "JSON asked for":
            return self.name
        return f"{self.name} {self.counted:.6g}"

    @property
    def is_share(self) -> bool:
        return self.name.startswith("share")


def traits(surface: Sequence[float]) -> list[Trait]:
    """Every number of a prompt, those that stand out most first."""
    found = [_trait(number, value) for number, value in zip(NUMBERS, surface, strict=True)]
    return sorted(found, key=lambda trait: -trait.share)


def standing_out(surface: Sequence[float]) -> list[Trait]:
    """Those above 0 that stand out most; that all words differ says nothing of a short prompt."""
    found = [trait for trait in traits(surface) if trait.value > 0.0]
    return [trait for trait in found if (trait.name, trait.value) != (DISTINCT, 1.0)][:SHOWN]


def _trait(number: Number, value: float) -> Trait:
    is_share = number.name.startswith("share")
    # float32 of log2(1 + count): a whole count comes back as one within 6 digits.
    counted = value if is_share else float(f"{2.0**value - 1.0:.6g}")
    return Trait(number.name, value, counted, min(value / number.knots[-1], 1.0))
