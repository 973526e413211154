"""Each figure that an operator sees, declared once: where it stands in the JSON of the status, what
it means, its gauge, and its row in `messplus status`.

`make docs` prints the tables of `docs/status.md` from here. The order is that of the metrics.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from litellm_messplus.figures.words import UNKNOWN, holder_of, value_at, written

T = TypeVar("T")
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


class Row(NamedTuple):
    """A row, or a column, for people: its title, and the template of its cell (`:form` is that form
    of the figure itself).

    Where it is None, ``unknown`` stands for the template, if given; ``more`` is a figure, and a
    template that follows where that is not zero. ``place`` sorts rows out of the metrics' order.
    """

    title: str
    cell: str
    place: int = 9
    unknown: str | None = None
    more: tuple[str, str] | None = None


class Shown(NamedTuple):
    """A figure at a ``path`` of its part of the status; without a ``meaning`` the one before it is
    of both. ``help`` is the help of its metric, where that is not the path."""

    path: str
    meaning: str = ""
    gauge: str = ""
    row: Row | None = None
    help: str = ""


class Cell(NamedTuple):
    """The row of a figure, written for one part of the status."""

    path: str
    title: str
    text: str


def cells(
    group: Iterable[Shown], found: Any, unit: str | None = None, within: str | tuple[str, ...] = ""
) -> list[Cell]:
    """Write the rows of a part, in their order: all of them, or those of the paths ``within``."""
    return [
        Cell(path, row.title, _text(path, row, found, unit))
        for path, row in _rows(group)
        if path.startswith(within)
    ]


def titles(group: Iterable[Shown]) -> list[str]:
    """List the titles of the rows of a part, in their order."""
    return [row.title for _, row in _rows(group)]


def described(group: Iterable[Shown], within: str = "") -> Callable[[type[T]], type[T]]:
    """Let the schema of a class of the status state what each figure means; a decorator."""
    meanings: dict[str, str] = {}
    meaning = ""
    for each in group:
        meaning = LINK.sub(r"\1", each.meaning) or meaning
        meanings[each.path] = meaning

    def describe(schema: dict[str, Any]) -> None:
        for name, value in schema["properties"].items():
            if within + name in meanings:
                value["description"] = meanings[within + name]

    def decorate(kind: type[T]) -> type[T]:
        setattr(kind, "__pydantic_config__", {"json_schema_extra": describe})  # noqa: B010
        return kind

    return decorate


def _rows(group: Iterable[Shown]) -> list[tuple[str, Row]]:
    found = [(each.path, each.row) for each in group if each.row is not None]
    return sorted(found, key=lambda each: each[1].place)


def _text(path: str, row: Row, found: Any, unit: str | None) -> str:
    if holder_of(found, path) is None:
        return UNKNOWN
    if row.unknown is not None and value_at(found, path) is None:
        text = row.unknown
    else:
        template = f"{{{path}{row.cell}}}" if row.cell.startswith(":") else row.cell
        text = written(template, found, unit)
    if row.more is not None and value_at(found, row.more[0]):
        text = f"{text} {written(row.more[1], found, unit)}"
    return text


def _of_all_time(name: str) -> str:
    name = f"overhead.{name}"
    return f"{{{name}_seconds:ms}}, {{{name}_share:percent 2}} of all time"


LEVEL = (
    Shown("zoo", "The zoo and service level of the promise."),
    Shown("service_level"),
    Shown("cost_unit", "`usd` or `joule`; `null` if read from a database."),
    Shown("source", "Source of the four figures below: the `engine`, or the `newest request`."),
    Shown("alpha", "The share promised now.", "alpha"),
    Shown(
        "queue",
        "Requests owed; under `adaptive`, below zero is credit.",
        "queue",
        Row("queue", ":figure requests"),
    ),
    Shown("price", "What one more satisfied request may cost.", "price", Row("price", ":figure $")),
    Shown(
        "is_within_reach",
        "Whether a candidate can hold alpha: by the engine, else by most of the newest 20 "
        "decisions.",
        "within_reach",
        help="1 where a candidate can hold alpha, else 0.",
    ),
    Shown("largest", "The largest candidate at the newest request, the baseline of `savings`."),
    Shown(
        "requests_per_hour",
        "Traffic, however it was served: the rate of the last 5 minutes, in requests an hour.",
    ),
    Shown(
        "as_before",
        "The newest requests that were [served as before](switching.md), which count towards no "
        "promise; `null` without any.",
    ),
    Shown("as_before.requests", "Their number, and how many arrive per hour now."),
    Shown("as_before.requests_per_hour", gauge="before_requests_per_hour"),
    Shown(
        "as_before.answered_share",
        "The answered share of those that ended.",
        "before_answered_share",
    ),
    Shown("as_before.judged", "Those with a verdict; their mean satisfaction, its 95 % interval."),
    Shown("as_before.rate", gauge="before_satisfaction"),
    Shown("as_before.low", gauge="before_satisfaction_low"),
    Shown("as_before.high", gauge="before_satisfaction_high"),
    Shown(
        "as_before.cost_per_request",
        "The mean cost of the calls that served; those that no user saw are left out.",
        "before_cost_per_request",
    ),
)
"""The figures of a promise."""

WINDOW = (
    Shown("answers.requests", "Requests decided.", "requests", Row("requests", ":", 1)),
    Shown(
        "answers.answered",
        "Those that got an answer, and their share of those that ended.",
        "answered",
    ),
    Shown(
        "answers.answered_share",
        gauge="answered_share",
        row=Row("answered", "{answers.answered}, {answers.answered_share:percent}", 2),
    ),
    Shown(
        "answers.failed",
        "[Those that ended without one](control.md#failed-requests), and by cause.",
        "failed",
        Row("failed", "{failures_in_words}", 3),
    ),
    Shown("answers.failed_upstream", gauge="failed_upstream"),
    Shown("answers.failed_no_deployment", gauge="failed_no_deployment"),
    Shown("answers.failed_deadline", gauge="failed_deadline"),
    Shown("answers.failed_client_gone", gauge="failed_client_gone"),
    Shown("answers.failed_refused", gauge="failed_refused"),
    Shown("answers.failed_unknown", gauge="failed_unknown"),
    Shown(
        "satisfaction.requests",
        "Requests, those with a verdict, and their share.",
    ),
    Shown("satisfaction.judged", gauge="judged"),
    Shown(
        "satisfaction.judged_share",
        gauge="judged_share",
        row=Row("judged", "{denominators}", 6),
    ),
    Shown("labels", "[The labels of each source](#labels-source-by-source)."),
    Shown("labels.labelled", "Requests with any label, whether it counts or not."),
    Shown("labels.labelled_share", gauge="labelled_share", row=Row("with any label", ":percent")),
    Shown("labels.sources", "The sources, the strongest kind first."),
    Shown("satisfaction.effective", "How many verdicts of equal weight are as much evidence."),
    Shown(
        "satisfaction.promised",
        "alpha of the judged requests; if it was changed, the weighted mean.",
        "promised",
    ),
    Shown(
        "satisfaction.rate",
        "The weighted mean of the verdicts on the served calls.",
        "satisfaction",
        Row(
            "satisfied, interval",
            "{satisfaction.rate,satisfaction.low,satisfaction.high:around}",
            5,
        ),
    ),
    Shown(
        "satisfaction.low", "Its 95 % Wilson interval, of `effective` verdicts.", "satisfaction_low"
    ),
    Shown("satisfaction.high", gauge="satisfaction_high"),
    Shown(
        "satisfaction.is_thin",
        "Whether [evidence is thin](#when-evidence-is-thin), and the same in words.",
        "evidence_thin",
        help="1 where evidence is thin, else 0.",
    ),
    Shown("satisfaction.evidence", row=Row("evidence", ":", 7)),
    Shown(
        "satisfaction.verdict",
        "One of [four words](#the-verdict).",
        "verdict",
        Row("promise (95 %)", ":", 4),
        "1 for the current verdict, which the label `verdict` names.",
    ),
    Shown("cost.total", "What all requests cost, explorations included, as far as known.", "cost"),
    Shown(
        "cost.per_request",
        "The mean over requests whose served call has a known cost.",
        "cost_per_request",
        Row(
            "cost per request",
            ":figure $",
            more=("cost.calls_without_cost", "({cost.calls_without_cost} calls of unknown cost)"),
        ),
    ),
    Shown("cost.calls_without_cost", "Successful calls of unknown cost, in no cost above."),
    Shown("exploration.requests", "Requests on which anything but the best was tried."),
    Shown(
        "exploration.share",
        gauge="exploration_share",
        row=Row(
            "explored",
            "{exploration.share:percent} of requests, {exploration.cost_share:percent} of cost",
        ),
    ),
    Shown("exploration.cost", "Cost of calls that no user saw, and its share of all cost."),
    Shown("exploration.cost_share", gauge="exploration_cost_share"),
    Shown(
        "savings",
        "How much less answered requests cost than the largest alone, by its own cost, else its "
        "price of the tokens that were used; calls that no user saw and judging are subtracted.",
    ),
    Shown("savings.routing_saved", "What serving saved, before labels are subtracted."),
    Shown("savings.label_cost", "What labels cost: calls that no user saw, and judging."),
    Shown(
        "savings.saved_share", "The share saved.", "saved_share_largest", Row("saved", ":percent")
    ),
    Shown("overhead", "[Time before the call](#the-overhead), next to that of the call."),
    Shown("overhead.requests", "Requests included, and those whose features came too late."),
    Shown("overhead.late"),
    Shown(
        "overhead.predicting_seconds",
        "Reading the prompt, waiting for a batch included; the share is of all three times.",
        "predicting_seconds",
        Row("predicting", _of_all_time("predicting")),
    ),
    Shown("overhead.predicting_share", gauge="predicting_share"),
    Shown(
        "overhead.deciding_seconds",
        "The rest before the call.",
        "deciding_seconds",
        Row("deciding", _of_all_time("deciding")),
    ),
    Shown("overhead.deciding_share", gauge="deciding_share"),
    Shown(
        "overhead.call_seconds",
        "The served call.",
        "call_seconds",
        Row("the call", _of_all_time("call")),
    ),
    Shown("overhead.call_share"),
)
"""The figures of a window: of all requests of a promise, and of its newest ones."""

SOURCE = (
    Shown("kind", "`feedback`, `judge`, or a check by its own name."),
    Shown("source"),
    Shown("labelled", "Those it labelled.", "source_labelled", help="`labelled` of a source."),
    Shown("counting", "How many of these are their request's verdict.", "source_counting"),
    Shown(
        "rate",
        "The mean of its newest labels, and its 95 % Wilson interval.",
        "source_satisfaction",
        help="`rate` of a source.",
    ),
    Shown("low", gauge="source_satisfaction_low", help="`low` of a source."),
    Shown("high", gauge="source_satisfaction_high", help="`high` of a source."),
    Shown("is_thin", "Whether evidence is thin from its labels alone."),
)
"""The figures of a source of labels, in a window."""

JUDGE = (
    Shown("zoo", "The zoo, and the model group that graded its answers."),
    Shown("judge"),
    Shown(
        "gradings",
        "Gradings requested of it, and those with a valid reply.",
        "judge_gradings",
        Row("gradings", "{gradings}, {graded} of them graded"),
    ),
    Shown("graded", gauge="judge_graded"),
    Shown(
        "cost",
        "In dollars, as far as known; and the gradings of unknown cost.",
        "judge_cost",
        Row(
            "cost",
            "{cost:figure usd}, in no cost above",
            unknown=UNKNOWN,
            more=("gradings_without_cost", "({gradings_without_cost} of unknown cost)"),
        ),
        help="`cost`, in dollars.",
    ),
    Shown("gradings_without_cost"),
    Shown("note", "Whether its labels count, in words.", row=Row("labels", ":")),
    Shown(
        "kappa",
        "Cohen's kappa and its interval of 95 %: 1 is perfect agreement, 0 what chance gives.",
        "judge_kappa",
        Row(
            "agreement with users (kappa)",
            "{kappa:.2f} ({kappa_low:.2f} to {kappa_high:.2f})",
            unknown=UNKNOWN,
        ),
    ),
    Shown("kappa_low"),
    Shown("kappa_high"),
    Shown(
        "both_satisfied",
        "The newest 1,000 calls that users judged too, by both verdicts.",
        row=Row(
            "on calls that both judged",
            "both satisfied {both_satisfied}, neither {neither}, only the judge "
            "{only_judge_satisfied}, only the user {only_user_satisfied}",
        ),
    ),
    Shown("only_judge_satisfied"),
    Shown("only_user_satisfied"),
    Shown("neither"),
    Shown(
        "position_bias",
        "How much more often it preferred the answer shown first, from -1 to 1.",
        "judge_position_bias",
    ),
    Shown(
        "counts",
        "Whether its labels count; `null` before the first.",
        "judge_counts",
        help="1 where its labels count, else 0.",
    ),
)
"""The figures of a judge."""

LABEL_COSTS = (
    Shown("zoo", "The zoo of the labels."),
    Shown(
        "unseen",
        "The cost, in the zoo's unit, of calls made to be labelled, which no user saw.",
        "labels_unseen_cost",
        Row("unseen calls", ":figure", 2),
        "`label_costs.unseen`; labelled with `zoo` alone.",
    ),
    Shown("unseen_today", row=Row("unseen today", ":figure", 4)),
    Shown(
        "judging",
        "What the judge cost, in dollars.",
        "labels_judging_dollars",
        Row("judging", ":figure usd", 3),
        "`label_costs.judging`; labelled with `zoo` alone.",
    ),
    Shown("judging_today", row=Row("judging today", ":figure usd", 5)),
    Shown(
        "saved",
        "Saved against always calling the largest: the sum of `savings.saved` of its promises.",
        "labels_saved",
        Row("saved", ":figure", 1),
        "`label_costs.saved`; labelled with `zoo` alone.",
    ),
)
"""What the labels of a zoo cost."""

KEY = (
    Shown("zoo", "The key, its zoo and level; `key_hash` is LiteLLM's hash, `null` without a key."),
    Shown("service_level"),
    Shown("key_hash"),
    Shown("requests", "Its requests of the last day.", row=Row("requests", ":figure")),
    Shown("verdicts", "Its labels, on any request.", row=Row("labels", ":figure")),
    Shown("counting", "Those that count.", row=Row("counting", ":figure")),
    Shown("unsatisfied", "The unsatisfied share of these.", row=Row("unsatisfied", ":percent")),
    Shown("held", "Those kept with weight 0.", row=Row("held back", ":figure")),
)
"""The figures of a key, in the last day."""

ALERT = (
    Shown("kind", gauge="alert", help="1 for each alert, labelled with its `kind` too."),
    Shown("alerts", gauge="alerts", help="How many alerts there are; without labels."),
)
"""What needs attention: no figures of the status, so only their gauges stand here."""

GROUPS = (LEVEL, WINDOW, SOURCE, JUDGE, LABEL_COSTS, ALERT)
"""The parts of the status that have gauges."""
