"""What was learned, for people: a table for each zoo, in words."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.prediction.learned import Change, Family, ModelView
from litellm_messplus.status.learned import Learned, LearnedZoo, Saving

SHOWN_FAMILIES = 4
SHOWN_CHANGES = 2
CONVINCING = 5.0
"""Nats of evidence from which the router decides by what it reads (`routing/plan.py`)."""


def render_learned(found: Learned) -> RenderableType:
    """Everything, to be printed by a rich console."""
    if not found.zoos:
        return Text("no requests yet")
    return Group(*(part for zoo in found.zoos for part in _zoo(zoo)))


def _zoo(zoo: LearnedZoo) -> Iterator[RenderableType]:
    for saving in zoo.savings:
        yield Text(_saved(zoo.zoo, saving))
    if zoo.reading is None:
        yield Text(f"{zoo.zoo}: no snapshot tells what was learned; ask the proxy with --url")
        return
    yield Text(_evidence(zoo.zoo, zoo.reading.evidence))
    table = Table(title=Text(f"{zoo.zoo}: what moves the chance of a satisfactory answer"))
    table.add_column("model")
    table.add_column("on average", justify="right")
    table.add_column("by the prompt, on the log-odds (what moves it most first)")
    for model in zoo.reading.models:
        table.add_row(model.candidate, _rate(model), "\n".join(_families(model)) or "nothing yet")
    yield table


def _saved(zoo: str, found: Saving) -> str:
    return (
        f"{zoo}, {found.service_level}: at alpha {found.alpha:g} reading saves an expected "
        f"{found.saved:.0%} ({found.low:.0%} to {found.high:.0%}) against the best fixed mix, over "
        f"the newest {found.requests} requests"
    )


def _evidence(zoo: str, nats: float) -> str:
    if nats >= CONVINCING:
        return f"{zoo}: reading predicts better than the means by {nats:.0f} nats: it decides"
    return f"{zoo}: reading has not proved itself yet ({nats:.1f} of {CONVINCING:g} nats)"


def _rate(model: ModelView) -> str:
    return f"{model.rate:.0%} ± {model.deviation:.0%}\n({model.labels:.0f} labels)"


def _families(model: ModelView) -> Iterator[str]:
    for family in model.families[:SHOWN_FAMILIES]:
        if family.spread >= 0.05:
            changes = "; ".join(_change(change) for change in family.changes[:SHOWN_CHANGES])
            yield f"{family.name} (spread {_nats(family)}): {changes}"


def _nats(family: Family) -> str:
    return f"{family.spread:.1f}"


def _change(change: Change) -> str:
    """As `digits 2 to 31: -1.8 ± 0.3`."""
    doubt = "" if change.is_sure else ", not sure"
    span = f"{_value(change.low)} to {_value(change.high)}"
    return f"{change.number} {span}: {change.nats:+.1f} ± {change.deviation:.1f}{doubt}"


def _value(value: float) -> str:
    return f"{value:.0f}" if value >= 10.0 or value == round(value) else f"{value:.2g}"
