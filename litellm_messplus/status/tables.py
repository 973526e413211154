"""Tables of the status for people: the labels, and the calibration."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.figures.words import UNKNOWN, figure, moment, percent, percent_around
from litellm_messplus.status.calibration import (
    PromptGain,
    ReadingPays,
    ZooCalibration,
)
from litellm_messplus.status.report import (
    CandidateStatus,
    JudgeStatus,
    Labels,
    LevelStatus,
    ResponseBias,
    SourceRate,
)
from litellm_messplus.terminal import Rows, numbers, whole

# The labels for people: what each source says, who answers, and what the judge did.

Row = tuple[str, str, str]
"""What it is, of the whole time, and of the last window."""


def label_rows(level: LevelStatus) -> Iterator[Row]:
    """Yield the requests with any label, then each source that has given one."""
    overall, last = level.overall.labels, level.last.labels
    yield "with any label", _share(overall), _share(last)
    recent = {each.source: each for each in last.sources}
    for source in overall.sources:
        yield f"{source.source} says", _source(source), _source(recent.get(source.source))


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


def judge_tables(judges: Sequence[JudgeStatus]) -> Iterator[RenderableType]:
    """Yield a table for each judge."""
    for judge in judges:
        table = Table(title=Text(f"{judge.zoo}, judge {judge.judge}"), show_header=False)
        for label, value in _judge(judge):
            style = "yellow" if label == "labels" and judge.counts is False else ""
            table.add_row(label, Text(value, style=style))
        yield table


def _judge(judge: JudgeStatus) -> Iterator[tuple[str, str]]:
    yield "gradings", f"{judge.gradings}, {judge.graded} of them graded"
    missing = judge.gradings_without_cost
    cost = UNKNOWN if judge.cost is None else f"{figure(judge.cost, 'usd')}, in no cost above"
    yield "cost", f"{cost} ({missing} of unknown cost)" if missing else cost
    yield "labels", judge.note
    if judge.kappa is not None:
        low, high = judge.kappa_low, judge.kappa_high
        yield "agreement with users (kappa)", f"{judge.kappa:.2f} ({low:.2f} to {high:.2f})"
        yield (
            "on calls that both judged",
            f"both satisfied {judge.both_satisfied}, neither {judge.neither}, "
            f"only the judge {judge.only_judge_satisfied}, only the user "
            f"{judge.only_user_satisfied}",
        )


def _share(labels: Labels) -> str:
    return percent(labels.labelled_share)


def _source(found: SourceRate | None) -> str:
    if found is None:
        return "nothing"
    counting = "all count" if found.counting == found.labelled else f"{found.counting} count"
    rate = percent_around(found.rate, found.low, found.high)
    return f"{rate} of {found.labelled}, {counting}"


# The calibration for people: what was predicted against what came, and whether reading pays.

STYLES = {ReadingPays.YES: "green", ReadingPays.NO: "yellow", ReadingPays.TOO_EARLY: "yellow"}


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
    yield Text(found.reading_pays.value, style=STYLES[found.reading_pays])


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
