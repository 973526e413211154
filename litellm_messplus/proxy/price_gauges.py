"""How far prices have followed the energy that is measured in service."""

from collections.abc import Mapping

from litellm_messplus.engine import Engine
from litellm_messplus.status.gauges import metric


def price_gauges(engines: Mapping[str, Engine]) -> dict[str, float]:
    """The factor of each candidate whose energy is measured, by metric name."""
    return {
        metric("messplus_price_factor", zoo=zoo, candidate=candidate): factor
        for zoo, engine in engines.items()
        for candidate, factor in engine.price_factors.items()
    }
