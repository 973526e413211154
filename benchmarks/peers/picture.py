"""The picture of docs/benchmarks.md: cost at alpha of every peer on every recording."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.page import OFTEN
from benchmarks.peers.runs import MIX, Row, names

PATH = Path(__file__).parents[2] / "docs" / "images" / "peers.svg"
COLOURS = ("#0b6e4f", "#d1495b", "#edae49", "#30638e", "#7b2d8b", "#888888")
MARKS = ("o", "s", "D", "^", "v", "x")
APART = 0.11
"""How far the peers of a recording are drawn apart, in rows."""


def draw(rows: Sequence[Row], path: Path = PATH) -> None:
    """Write the picture as SVG; hollow marks are of promises that were not held."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    places = list(dict.fromkeys(row.recording for row in rows))
    figure = Figure(figsize=(8.0, 0.75 * len(places) + 1.4), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.axvline(1.0, color="#888888", linewidth=0.8)
    peers = [name for name in names(rows) if name != MIX]
    for number, peer in enumerate(peers):
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        axes.plot([], [], mark, color=colour, label=peer)
        for row in (row for row in rows if row.peer == peer):
            axes.plot(
                row.over_mix,
                places.index(row.recording) + APART * (number - (len(peers) - 1) / 2),
                mark,
                color=colour,
                markerfacecolor=colour if row.below_half_point <= OFTEN else "white",
            )
    axes.set_yticks(range(len(places)), places)
    axes.invert_yaxis()
    axes.set_xscale("log")
    ticks = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
    low, high = axes.get_xlim()
    shown = [tick for tick in ticks if low <= tick <= high]
    axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
    axes.minorticks_off()
    axes.set_xlabel("cost at alpha, over the hindsight mix; hollow: promise not held")
    axes.grid(axis="y", linewidth=0.3)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "peers"}):
        figure.savefig(path, metadata={"Date": None})
