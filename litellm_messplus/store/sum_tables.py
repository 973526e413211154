"""Tables of what follows from the log: verdicts, outcomes, and sums by day and by hour. Written
together with the log, and read in its place."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Date, Float, Integer, String, Table

from litellm_messplus.figures.tally import COUNTS, FIGURES
from litellm_messplus.store.columns import (
    Position,
    UtcDateTime,
    key,
    metadata,
    optional,
    required,
    where_known,
)

verdicts = Table(
    "verdicts",
    metadata,
    key("call_id", String(80), "The call that is judged."),
    required("label_id", String(64), "The label that counts."),
    required("request_id", String(64), "The request of that call.", index=True),
    required("position", Position, "The label's place in the log.", unique=True),
    required("created_at", UtcDateTime, "When the label was given, UTC."),
    required("kind", String(16), "`feedback`, `check`, `judge` or `implicit`."),
    required("source", String(64), "Who judged: its kind, for a check a colon and its name."),
    required("value", Float, "Satisfaction from 0 to 1."),
    required("weight", Float, "How much it counts."),
    optional(
        "probability",
        Float,
        "The probability of the draw that bought it: it stands for one divided by that many "
        "requests. NULL where no draw did.",
    ),
    comment="The label of each call that counts, written together with the log.",
)

outcomes = Table(
    "outcomes",
    metadata,
    key("request_id", String(64), "Our own id of the request."),
    required("position", Position, "Place in the log.", unique=True),
    required("day", Date, "The date of the request, UTC."),
    required("hour", Integer, "The hour of that day, UTC, from 0."),
    required("zoo", String(255), "The `model_name` that was asked for."),
    required("service_level", String(255), "The promise."),
    required("alpha", Float, "The share promised at that time."),
    required("arm", String(16), "`routed`, or `before`: served as before."),
    required("counts", Boolean, "Whether it counts itself, or for its conversation."),
    required("is_exploration", Boolean, "Whether something else was tried."),
    required("queue", Float, "The virtual queue at the decision."),
    optional("encode_seconds", Float, "How long the features took; NULL where they came too late."),
    required("deciding_seconds", Float, "How long else the decision took."),
    optional("encode_joules", Float, "Energy of the features; NULL where not measured."),
    required("exploration_cost", Float, "What the exploration calls cost, as far as it is known."),
    required("judging_cost", Float, "What judges of its answers cost, as far as it is known."),
    required("cost", Float, "What all calls cost, as far as it is known."),
    required("unstated", Integer, "Successful calls whose cost nobody stated at their end."),
    optional("served", String(255), "The candidate that served; NULL before the call has ended."),
    optional("status", String(16), "`success` or `failure`; NULL before the call has ended."),
    optional("failure", String(16), "Who failed; NULL where nobody did, or it is unknown."),
    optional("is_cache_hit", Boolean, "Whether LiteLLM's cache answered."),
    optional("seconds", Float, "How long the served call took."),
    optional("served_cost", Float, "What the served call cost: measured, else as stated."),
    optional("cost_largest", Float, "What the largest candidate alone would have cost."),
    required("is_measured", Boolean, "Whether the energy of the served call was measured."),
    required("is_labelled", Boolean, "Whether the served call has a label, counting or not."),
    optional("satisfaction", Float, "The value of the verdict on the served call."),
    optional("satisfaction_weight", Float, "How many requests that verdict stands for."),
    optional("satisfaction_kind", String(16), "Its kind."),
    where_known("ix_outcomes_failure", "failure"),
    comment="What each request came to, one row a request, written together with the log.",
)


def of_promise(whose: str) -> Iterator[Column[Any]]:
    """Yield the columns by which requests, or what belongs to one, are added up; ``whose`` date the
    day is."""
    yield key("day", Date, f"The date of {whose}, UTC.")
    yield key("zoo", String(255), "The `model_name` that was asked for.")
    yield key("service_level", String(255), "The promise.")


def of_tally() -> Iterator[Column[Any]]:
    """Yield a column for each figure of a `Tally`."""
    for name, figure in FIGURES.items():
        yield required(name, Integer if name in COUNTS else Float, figure.comment)


request_sums = Table(
    "request_sums",
    metadata,
    *of_promise("its requests"),
    key("alpha", Float, "The share promised at that time."),
    *of_tally(),
    comment="Requests added up by day and promise, written together with the log: the status is "
    "read from here.",
)

hourly_request_sums = Table(
    "hourly_request_sums",
    metadata,
    *of_promise("its requests"),
    key("hour", Integer, "The hour of that day, UTC, from 0."),
    key("alpha", Float, "The share promised at that time."),
    *of_tally(),
    comment="Requests added up by hour and promise, written together with the log, for the page's "
    "charts.",
)

call_sums = Table(
    "call_sums",
    metadata,
    *of_promise("the request"),
    key("candidate", String(255), "The candidate; empty for NULL."),
    key("model", String(255), "LiteLLM's name; empty for NULL."),
    key("role", String(16), "`served` or `exploration`."),
    required("calls", Integer, "Calls ended."),
    required("failures", Integer, "Those of them that failed."),
    optional("cost", Float, "What they cost, measured energy included; NULL where unknown."),
    required("calls_without_cost", Integer, "Calls whose cost is unknown."),
    optional("prompt_tokens", BigInteger, "Tokens read; NULL where nobody knows."),
    optional("completion_tokens", BigInteger, "Tokens written; NULL where nobody knows."),
    comment="Calls added up by day, promise and model, written together with the log.",
)

label_sums = Table(
    "label_sums",
    metadata,
    *of_promise("the request"),
    key("kind", String(16), "A kind of labels."),
    key("source", String(64), "Who judged."),
    required("labelled", Integer, "Served calls that it labelled."),
    required("satisfaction", Float, "Sum of its newest labels' values on them."),
    required("satisfaction_squared", Float, "Sum of the squares of these values."),
    required("counting", Integer, "How many of its labels are the verdict of their request."),
    comment="What each source of labels said of the served calls, added up by day and promise, "
    "written together with the log.",
)

grading_sums = Table(
    "grading_sums",
    metadata,
    key("day", Date, "The date of the gradings, UTC."),
    key("zoo", String(255), "The zoo whose answers were graded."),
    key("judge", String(255), "The model group that graded."),
    required("gradings", Integer, "Times that it was asked."),
    required("graded", Integer, "Those of them that it answered as it should."),
    required("answers", Integer, "Answers that it was shown."),
    optional("cost", Float, "In dollars, as far as it is known; NULL where none is."),
    required("gradings_without_cost", Integer, "Gradings whose cost is unknown."),
    optional("newest_graded", Position, "Place in the log of the newest answered as it should."),
    comment="Gradings added up by day and judge, written together with the log.",
)

hourly_call_sums = Table(
    "hourly_call_sums",
    metadata,
    *of_promise("the request"),
    key("hour", Integer, "The hour of that day, UTC, from 0."),
    key("candidate", String(255), "The candidate; empty for NULL."),
    key("role", String(16), "`served` or `exploration`."),
    required("calls", Integer, "Calls ended."),
    required("failures", Integer, "Those of them that failed."),
    comment="Calls added up by hour, promise and model, written together with the log, for the "
    "page's charts.",
)
