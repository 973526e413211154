"""Tables of the status beyond single promises: judges, calibration, models, keys, costs."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.conversations.rule import KEPT, Hold
from litellm_messplus.figures.shown import JUDGE, KEY, LABEL_COSTS, cells, titles
from litellm_messplus.figures.words import figure, moment, percent, percent_around
from litellm_messplus.runtime.terminal import Column, Rows, numbers, whole
from litellm_messplus.status import newest
from litellm_messplus.status.calibration import PromptGain, ReadingPays, ZooCalibration
from litellm_messplus.status.labels import JudgeStatus
from litellm_messplus.status.newest import ConversationStatus, KeyIncidents
from litellm_messplus.status.report import LabelCostStatus
from litellm_messplus.store.history import CandidateStatus
from litellm_messplus.store.key_activity import KeyStatus

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


# The calibration for people: predictions against verdicts, and whether reading pays.

PAYS = {ReadingPays.YES: "green", ReadingPays.NO: "yellow", ReadingPays.TOO_EARLY: "yellow"}


def calibration_tables(calibration: ZooCalibration) -> Iterator[RenderableType]:
    """Yield two tables of one zoo."""
    yield _reliability(calibration)
    yield _readings(calibration)


def _reliability(calibration: ZooCalibration) -> Rows:
    """Lay out a row per bin; if calibrated, the satisfied share is the predicted one."""
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
    """Yield one table of the changes of candidates; none if there were none."""
    columns = whole("model", "when, UTC", "zoo", "what")
    rows = [(each.candidate, moment(each.at), each.zoo, each.change.value) for each in changes]
    yield from _any("models that came, changed their price, or went", columns, rows)


def _any(
    title: str, columns: Iterable[Column], rows: Sequence[Iterable[str | Text]]
) -> Iterator[Rows]:
    """Yield a table of the rows; none without any."""
    if rows:
        yield Rows(title, columns, rows)


# Incidents, labels and costs of keys, and the outcomes of conversations.

SHOWN = 12
"""Characters of a key's hash: enough to tell the keys of a proxy apart."""


def short_key(key_hash: str | None) -> str:
    """Return the beginning of a key's hash."""
    return (key_hash or "none")[:SHOWN]


def incident_tables(found: Sequence[KeyIncidents]) -> Iterator[RenderableType]:
    """Yield one table of these keys; none if nothing went wrong and no check labelled."""
    titles = ("requests", "failed", "late", "checks", "of them unsatisfied", "held back")
    columns = (*whole("key", "zoo"), *numbers(*titles))
    rows = [
        (short_key(each.key_hash), each.zoo, figure(each.requests), *map(figure, each.counts))
        for each in found
    ]
    yield from _any(f"what keys caused, of the newest {newest.OF_ALL:,} requests", columns, rows)


def key_tables(keys: Sequence[KeyStatus]) -> Iterator[RenderableType]:
    """Yield one table of all keys; none without labels in the last day."""
    columns = (*whole("key", "zoo, service level"), *numbers(*titles(KEY)))
    yield from _any("keys with the most labels, last day", columns, [*map(_key, keys)])


def _key(key: KeyStatus) -> tuple[str | Text, ...]:
    *found, held = (cell.text for cell in cells(KEY, key))
    styled = Text(held, style="yellow" if key.held else "")
    return short_key(key.key_hash), f"{key.zoo}, {key.service_level}", *found, styled


def label_cost_tables(costs: Sequence[LabelCostStatus]) -> Iterator[RenderableType]:
    """Yield one table of all zoos whose labels cost something; none if none do."""
    columns = (*whole("zoo"), *numbers(*titles(LABEL_COSTS)))
    rows = [
        (each.zoo, *(cell.text for cell in cells(LABEL_COSTS, each)))
        for each in costs
        if each.unseen or each.judging
    ]
    yield from _any("what labels cost, whole time and today, in the zoo's unit", columns, rows)


def conversation_tables(found: Sequence[ConversationStatus]) -> Iterator[RenderableType]:
    """Yield one table of all promises; none if no request belongs to a conversation."""
    titles = ("begun", "turns", "cost", "held", "switches", "trouble", "lost", "unknown")
    columns = (*whole("zoo, service level"), *numbers(*titles))
    title = (
        f"conversations, of the newest {newest.OF_EACH_LEVEL:,} requests; costs in the zoo's unit"
    )
    yield from _any(title, columns, [*map(_conversations, found)])


def _conversations(found: ConversationStatus) -> tuple[str, ...]:
    held = ", ".join(f"{found.holds[hold]} {hold}" for hold in sorted(KEPT) if found.holds[hold])
    return (
        f"{found.zoo}, {found.service_level}",
        *map(figure, (found.conversations, found.turns, found.cost)),
        percent(found.held_share) + (f" ({held})" if held else ""),
        figure(found.switches),
        *(figure(found.holds[hold]) for hold in (Hold.TROUBLE, Hold.LOST, Hold.UNKNOWN)),
    )
