"""The keys that judge most, for people."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.status.report import KeyStatus

SHOWN = 12
"""Characters of a key's hash: enough to tell the keys of a proxy apart."""


def key_tables(keys: Sequence[KeyStatus]) -> Iterator[RenderableType]:
    """One of all; none where nobody said anything in the last day."""
    if not keys:
        return
    table = Table(title="keys with the most verdicts, last day")
    for title in ("zoo, service level", "key"):
        table.add_column(title)
    for title in ("requests", "verdicts", "counting", "unsatisfied", "held back"):
        table.add_column(title, justify="right")
    for key in keys:
        unsatisfied = "unknown" if key.unsatisfied is None else f"{key.unsatisfied:.1%}"
        table.add_row(
            Text(f"{key.zoo}, {key.service_level}"),
            Text((key.key_hash or "none")[:SHOWN]),
            *(str(key.requests), str(key.verdicts), str(key.counting), unsatisfied),
            Text(str(key.held), style="yellow" if key.held else ""),
        )
    yield table
