"""The tables of docs/benchmarks.md, and where a peer wins."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from benchmarks.peers.runs import ORACLE, OURS, Kind, Row, names, not_run

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
OFTEN = 0.1
"""Share of runs half a point below alpha above which a promise counts as not held."""
LESS = 0.005
"""By how much a ratio must be lower to be named: less is not shown."""
MORE_POINTS = 0.5
"""By how many points a peer must end above alpha, and above this project, to be named."""


def write(rows: Sequence[Row], recordings: Sequence[Mapping[str, Any]], seeds: int) -> None:
    """Put what was measured into the page."""
    text = "\n".join([*summary(rows), "", *wins(rows), "", *each(rows, recordings, seeds)])
    PAGE.write_text(replaced(PAGE.read_text("utf-8"), "peers", text), "utf-8")


def replaced(page: str, name: str, text: str) -> str:
    """Return the page with the text between the two comments of that name. Raises ValueError if it
    lacks one."""
    begin, end = f"<!-- {name}: written by a command -->\n", f"<!-- {name}: end -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page lacks the comments of {name}")
    return f"{before}{begin}\n{text}\n\n{end}{after}"


def cells(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield the summary: a header, then a row for each peer that is on every recording."""
    places = list(dict.fromkeys(row.recording for row in rows))
    yield ["Peer", *places, "geometric mean", "CPU a decision"]
    for peer in names(rows):
        own = {row.recording: row for row in rows if row.peer == peer}
        mean = math.exp(math.fsum(math.log(own[place].over_mix) for place in places) / len(places))
        cpu = [row.cpu_ms for row in own.values() if row.cpu_ms is not None]
        shown = f"{math.fsum(cpu) / len(cpu):.2f} ms" if cpu else ""
        yield [peer, *(_over_mix(own[place]) for place in places), f"{mean:.2f}", shown]


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the summary in Markdown."""
    yield from _markdown(cells(rows))


def summary_table(rows: Sequence[Row]) -> Table:
    """Lay out the summary for a terminal."""
    header, *lines = cells(rows)
    table = Table(*header, box=SIMPLE, caption="cost at alpha over the hindsight mix")
    for line in lines:
        table.add_row(*line)
    return table


def wins(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each recording that says which peers, oracle left out, cost less or satisfy
    more, and whether they hold the promise; then who takes less CPU."""
    for place in dict.fromkeys(row.recording for row in rows):
        own, *others = [row for row in rows if row.recording == place and row.peer != ORACLE]
        cheaper = [row for row in others if row.over_mix < own.over_mix - LESS]
        better = [
            row
            for row in others
            if row.kind is Kind.ONLINE and row.d_points > max(own.d_points, 0.0) + MORE_POINTS
        ]
        lines = [
            *(f"{_named(row)} costs less ({row.over_mix:.2f})" for row in cheaper),
            *(
                f"{_named(row)} satisfies more ({100.0 * row.satisfaction:.1f} %) "
                f"at {row.over_mix:.2f}"
                for row in better
            ),
        ]
        shown = "; ".join(lines) if lines else "no peer costs less or satisfies more"
        yield f"- {place}, this project {own.over_mix:.2f}: {shown}."
    online = [row for row in rows if row.kind is Kind.ONLINE and row.cpu_ms is not None]
    own_cpu = {row.recording: row.cpu_ms for row in online if row.peer == OURS}
    heavier = {row.peer for row in online if (row.cpu_ms or 0.0) >= (own_cpu[row.recording] or 0.0)}
    lighter = [peer for peer in names(online) if peer not in heavier]
    if lighter:
        yield f"- CPU a decision: less on every recording with {', '.join(lighter)}."


def _named(row: Row) -> str:
    """Name a peer, with what it lacks."""
    name = f"{row.peer} alone" if row.kind is Kind.ALONE else row.peer
    return f"{name}, which does not hold the promise," if row.below_half_point > OFTEN else name


def each(rows: Sequence[Row], recordings: Sequence[Mapping[str, Any]], seeds: int) -> Iterator[str]:
    """Yield a table for each recording, with every model alone."""
    for about in recordings:
        yield (
            f"**{about['name']}**, alpha {about['alpha']:g}, {about['requests']:,} requests, "
            f"{seeds} seeds"
        )
        yield ""
        header = ["Peer", "satisfied", "cost at alpha", "runs below", "CPU a decision"]
        lines = [_line(row) for row in rows if row.recording == about["name"]]
        yield from _markdown(iter([header, *lines]))
        yield ""
    for peer, reason in not_run().items():
        yield f"{peer} was not run: {reason}."


def _line(row: Row) -> list[str]:
    name = f"{row.peer} alone" if row.kind is Kind.ALONE else row.peer
    cpu = "" if row.cpu_ms is None else f"{row.cpu_ms:.2f} ms"
    below = f"{100.0 * row.below_half_point:.0f} %"
    return [name, f"{100.0 * row.satisfaction:.1f} %", f"{row.over_mix:.2f}", below, cpu]


def _over_mix(row: Row) -> str:
    """Return the ratio, in brackets where the promise is not held."""
    shown = f"{row.over_mix:.2f}"
    return f"({shown})" if row.below_half_point > OFTEN else shown


def _markdown(table: Iterator[list[str]]) -> Iterator[str]:
    header = next(table)
    yield f"| {' | '.join(header)} |"
    yield "| --- " + "| ---: " * (len(header) - 1) + "|"
    for line in table:
        yield f"| {' | '.join(line)} |"
