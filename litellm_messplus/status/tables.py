"""Tables of the status for people: the figures of both windows, the labels, the calibration."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.figures.interval import Standing
from litellm_messplus.figures.shown import JUDGE, WINDOW, Cell, cells
from litellm_messplus.figures.words import figure, moment, percent, percent_around
from litellm_messplus.status.calibration import (
    PromptGain,
    ReadingPays,
    ZooCalibration,
)
from litellm_messplus.status.report import (
    CandidateStatus,
    JudgeStatus,
    LevelStatus,
    ResponseBias,
    SourceRate,
    WindowStatus,
)
from litellm_messplus.terminal import Rows, numbers, whole

# The figures of a promise, of the whole time and of the last window.

STYLES = {
    Standing.ON_TRACK: "green",
    Standing.BELOW: "red",
    Standing.TOO_EARLY: "yellow",
    Standing.FAILING: "bold red",
}

Row = tuple[Text, str | Text, str | Text]
"""What it is, of the whole time, and of the last window."""


def both_windows(level: LevelStatus, within: str | tuple[str, ...]) -> Iterator[Row]:
    """Yield the rows of both windows, of the figures at the paths ``within``."""
    overall, last = (
        cells(WINDOW, window, level.cost_unit, within) for window in (level.overall, level.last)
    )
    for one, other in zip(overall, last, strict=True):
        is_saving = one.path == "savings.saved_share"
        title = f"{one.title} against {level.baseline}" if is_saving else one.title
        yield Text(title), _styled(one, level.overall, level), _styled(other, level.last, level)


def _styled(cell: Cell, window: WindowStatus, level: LevelStatus) -> Text:
    found = window.satisfaction
    match cell.path:
        case "satisfaction.verdict":
            return Text(cell.text, style=STYLES[found.verdict])
        case "satisfaction.evidence" if found.is_thin:
            return Text(cell.text, style="yellow")
        case "satisfaction.rate" if found.promised != level.alpha:
            return Text(f"{cell.text}, promised {percent(found.promised)}")
    return Text(cell.text)


# The labels for people: what each source says, who answers, and what the judge did.


def label_rows(level: LevelStatus) -> Iterator[Row]:
    """Yield the requests with any label, then each source that has given one."""
    yield from both_windows(level, "labels.")
    recent = {each.source: each for each in level.last.labels.sources}
    for source in level.overall.labels.sources:
        said = Text(f"{source.source} says")
        yield said, _source(source), _source(recent.get(source.source))


def bias_rows(found: ResponseBias | None) -> Iterator[tuple[str, str]]:
    """Yield the rows of the response bias; none where no judge graded."""
    if found is None:
        return
    kind = "not enough evidence, " if found.is_thin else ""
    kind += "" if found.is_corrected else "the judge taken at its word, "
    yield (
        "unsatisfied users answer",
        f"{found.ratio:.2f} times as often ({found.low:.2f} to {found.high:.2f}; "
        f"{kind}{found.graded} graded)",
    )
    if found.feedback_rate is not None:
        yield (
            "feedback, had all answered",
            f"{percent(found.corrected_rate)} (as given: {percent(found.feedback_rate)})",
        )


OF_BOTH = ("kappa", "both_satisfied")
"""The rows of calls that users judged too."""


def judge_tables(judges: Sequence[JudgeStatus]) -> Iterator[RenderableType]:
    """Yield a table for each judge."""
    for judge in judges:
        table = Table(title=Text(f"{judge.zoo}, judge {judge.judge}"), show_header=False)
        for cell in cells(JUDGE, judge):
            if judge.kappa is None and cell.path in OF_BOTH:
                continue
            style = "yellow" if cell.path == "note" and judge.counts is False else ""
            table.add_row(cell.title, Text(cell.text, style=style))
        yield table


def _source(found: SourceRate | None) -> str:
    if found is None:
        return "nothing"
    counting = "all count" if found.counting == found.labelled else f"{found.counting} count"
    rate = percent_around(found.rate, found.low, found.high)
    return f"{rate} of {found.labelled}, {counting}"


# The calibration for people: what was predicted against what came, and whether reading pays.

PAYS = {ReadingPays.YES: "green", ReadingPays.NO: "yellow", ReadingPays.TOO_EARLY: "yellow"}


def calibration_tables(calibration: ZooCalibration) -> Iterator[RenderableType]:
    """Yield two tables of one zoo."""
    yield _reliability(calibration)
    yield _readings(calibration)


def _reliability(calibration: ZooCalibration) -> Rows:
    """Lay out a row a bin; where all is well, the satisfied share is the predicted one."""
    figures = numbers("predicted", "satisfied, interval", "judged calls")
    rows = Rows(f"{calibration.zoo}, predictions against verdicts", (*whole("candidate"), *figures))
    for candidate in calibration.candidates:
        for found in candidate.bins:
            rows.add(
                candidate.candidate,
                percent(found.predicted),
                percent_around(found.satisfied, found.satisfied_low, found.satisfied_high),
                figure(found.calls),
            )
        rows.end_section()
    return rows


def _readings(calibration: ZooCalibration) -> Rows:
    figures = numbers("predicted", "running mean", "gain, interval", "pays")
    rows = Rows(
        f"{calibration.zoo}, does reading the prompt pay? (log-loss in nats)",
        (*whole("candidate"), *figures),
    )
    for candidate in calibration.candidates:
        rows.add(candidate.candidate, *_reading(candidate.reading))
    rows.end_section()
    rows.add("all", *_reading(calibration.reading))
    return rows


def _reading(found: PromptGain) -> Iterator[str | Text]:
    yield figure(found.log_loss)
    yield figure(found.log_loss_mean)
    yield _gain(found)
    yield Text(found.reading_pays.value, style=PAYS[found.reading_pays])


def _gain(found: PromptGain) -> str:
    if found.gain_low is None or found.gain_high is None:
        return f"{found.gain:+.4f}"
    return f"{found.gain:+.4f} ({found.gain_low:+.4f} to {found.gain_high:+.4f})"


def candidate_tables(changes: Sequence[CandidateStatus]) -> Iterator[RenderableType]:
    """Yield one table of what became of the candidates; none where nothing did."""
    if not changes:
        return
    rows = Rows(
        "models that came, changed their price, or went",
        whole("model", "when, UTC", "zoo", "what"),
    )
    for each in changes:
        rows.add(each.candidate, moment(each.at), each.zoo, each.change.value)
    yield rows
