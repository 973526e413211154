"""What the calls of a zoo that counts in joules have emitted, where its electricity is known."""

from collections.abc import Mapping

from litellm_messplus.status.gauges import metric
from litellm_messplus.status.report import Status
from litellm_messplus.zoo import Zoo


def carbon_gauges(status: Status, zoos: Mapping[str, Zoo]) -> dict[str, float]:
    """Grams of CO2e by metric name, for each service level whose cost and carbon are known."""
    found = {}
    for level in status.levels:
        grams = _grams_per_joule(zoos.get(level.zoo))
        if grams is not None and level.overall.cost.total is not None:
            name = metric("messplus_carbon_grams", zoo=level.zoo, service_level=level.service_level)
            found[name] = grams * level.overall.cost.total
    return found


def _grams_per_joule(zoo: Zoo | None) -> float | None:
    """None in a zoo of dollars too: what it says of carbon is refused."""
    electricity = zoo.settings.electricity if zoo is not None else None
    return None if electricity is None else electricity.grams_per_joule
