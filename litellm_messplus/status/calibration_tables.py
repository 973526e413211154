"""The calibration for people: what was predicted against what came, and whether reading pays."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.status.calibration import (
    Reading,
    ReadingPays,
    ZooCalibration,
)

STYLES = {ReadingPays.YES: "green", ReadingPays.NO: "yellow", ReadingPays.TOO_EARLY: "yellow"}


def calibration_tables(calibration: ZooCalibration) -> Iterator[RenderableType]:
    """Two tables of one zoo."""
    yield _reliability(calibration)
    yield _readings(calibration)


def _reliability(calibration: ZooCalibration) -> Table:
    """A row a bin; where all is well, the satisfied share is the predicted one."""
    table = Table(title=Text(f"{calibration.zoo}, predictions against verdicts"))
    table.add_column("candidate", overflow="fold")
    for column in ("predicted", "satisfied, interval", "judged calls"):
        table.add_column(column, justify="right")
    for candidate in calibration.candidates:
        for place, found in enumerate(candidate.bins):
            low, high = found.satisfied_low, found.satisfied_high
            table.add_row(
                "" if place else Text(candidate.candidate),
                f"{found.predicted:.1%}",
                f"{found.satisfied:.1%} ({low:.1%} to {high:.1%})",
                str(found.calls),
            )
        table.add_section()
    return table


def _readings(calibration: ZooCalibration) -> Table:
    table = Table(title=Text(f"{calibration.zoo}, does reading the prompt pay?"))
    table.add_column("log-loss in nats", overflow="fold")
    for column in ("predicted", "running mean", "gain, interval", "pays"):
        table.add_column(column, justify="right")
    for candidate in calibration.candidates:
        table.add_row(Text(candidate.candidate), *_reading(candidate.reading))
    table.add_section()
    table.add_row("all", *_reading(calibration.reading))
    return table


def _reading(found: Reading) -> Iterator[RenderableType]:
    yield f"{found.log_loss:.4f}"
    yield f"{found.log_loss_mean:.4f}"
    yield _gain(found)
    yield Text(found.reading_pays.value, style=STYLES[found.reading_pays])


def _gain(found: Reading) -> str:
    if found.gain_low is None or found.gain_high is None:
        return f"{found.gain:+.4f}"
    return f"{found.gain:+.4f} ({found.gain_low:+.4f} to {found.gain_high:+.4f})"
