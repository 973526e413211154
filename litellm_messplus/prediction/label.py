"""A label as it is learned from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Label:
    """Satisfaction from 0 to 1, and how much it counts."""

    value: float
    weight: float = 1.0

    def residual(self, rate: float) -> float:
        """Its weighted distance from a rate."""
        return self.weight * (self.value - rate)
