"""What was pruned, for the terminal."""

from collections.abc import Iterator

from rich.table import Table

from litellm_messplus.retention.prune import Pruned


def render(found: Pruned) -> Iterator[Table | str]:
    """One row a table of the log, then what is worth knowing."""
    table = Table(title=found.database, title_justify="left")
    table.add_column("table")
    table.add_column("rows", justify="right")
    for name, count in found.rows.items():
        table.add_row(name, str(count))
    yield table
    verb = "would go" if found.is_dry_run else "are gone"
    yield f"requests decided before {found.before:%Y-%m-%d %H:%M} UTC, up to {found.upto}, {verb}"
    for zoo, position in found.held.items():
        yield (
            f"{zoo}: older requests stay, for its newest snapshot is at {position}. A proxy takes "
            "one every messplus.snapshot_every records, and when it stops; where none serves the "
            f"zoo any more: --forget-zoo {zoo}"
        )
