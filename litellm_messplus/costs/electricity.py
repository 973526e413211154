"""Where dollars and joules meet: what electricity costs, and what it emits."""

JOULES_PER_KWH = 3_600_000.0


def dollars_per_joule(price_per_kwh: float) -> float:
    """Of electricity at so many USD per kWh."""
    return price_per_kwh / JOULES_PER_KWH


def grams_per_joule(carbon_per_kwh: float) -> float:
    """CO2e of electricity that emits so many grams per kWh."""
    return carbon_per_kwh / JOULES_PER_KWH
