"""Tables of sums by day and by hour, written together with the log: the status reads them."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import BigInteger, Column, Date, Float, Integer, String, Table

from litellm_messplus.store.columns import Position, key, metadata, optional, required


def of_promise(whose: str) -> Iterator[Column[Any]]:
    """Yield the columns by which requests, or what belongs to one, are added up; ``whose`` date the
    day is."""
    yield key("day", Date, f"The date of {whose}, UTC.")
    yield key("zoo", String(255), "The `model_name` that was asked for.")
    yield key("service_level", String(255), "The promise.")


def of_verdicts() -> Iterator[Column[Any]]:
    """Yield what verdicts on requests add up to."""
    yield required("weight", Float, "Sum of the verdicts' weights.")
    yield required("weight_squared", Float, "Sum of the squares of these weights.")
    yield required("weighted_satisfaction", Float, "Sum of weight times satisfaction.")


def of_comparison() -> Iterator[Column[Any]]:
    """Yield what savings are worked out from."""
    known = "Successful requests of known cost, the largest's being known too."
    yield required("compared", Integer, known)
    yield required("compared_cost", Float, "What those cost, explorations included.")
    yield required(
        "compared_cost_largest", Float, "What they would have cost at the largest alone."
    )


request_sums = Table(
    "request_sums",
    metadata,
    *of_promise("its requests"),
    key("alpha", Float, "The share promised at that time."),
    required("requests", Integer, "Requests decided."),
    required(
        "counted",
        Integer,
        "What the promise counts: those requests, or the conversations that they began.",
    ),
    required("labelled", Integer, "Those with a label of any source, whether it counts or not."),
    required("answered", Integer, "Those with a verdict."),
    *of_verdicts(),
    required("cost", Float, "What all cost as far as it is known, explorations included."),
    required("priced", Integer, "Requests whose served call has a known cost."),
    required("priced_cost", Float, "What those cost, explorations included."),
    required("explorations", Integer, "Requests on which something else was tried."),
    required("exploration_cost", Float, "What the exploration calls cost."),
    *of_comparison(),
    required("timed", Integer, "Requests whose served call has ended after a known time."),
    required("late", Integer, "Those of the timed whose features came too late."),
    required("predicting_seconds", Float, "What the features of the timed took."),
    required("deciding_seconds", Float, "What else their decisions took."),
    required("call_seconds", Float, "What their served calls took."),
    required("metered", Integer, "Those of the timed whose features' energy was measured."),
    required("joules", Float, "That energy."),
    comment="Requests added up by day and promise, written together with the log: the status is "
    "read from here.",
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
    required("unstated", Integer, "Successful calls whose cost nobody stated at their end."),
    required("own", Integer, "A model's own answers: successful, and not repeated by a cache."),
    required("priced", Integer, "Own answers of known cost."),
    required("priced_cost", Float, "What those cost."),
    required("judged", Integer, "Own answers with a verdict."),
    required("weight", Float, "Sum of these verdicts' weights."),
    required("weight_squared", Float, "Sum of the squares of these weights."),
    required("weighted_satisfaction", Float, "Sum of weight times satisfaction."),
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

hourly_request_sums = Table(
    "hourly_request_sums",
    metadata,
    *of_promise("its requests"),
    key("hour", Integer, "The hour of that day, UTC, from 0."),
    key("alpha", Float, "The share promised at that time."),
    required("requests", Integer, "Requests decided."),
    required("answered", Integer, "Those with a verdict."),
    *of_verdicts(),
    required("cost", Float, "What all cost as far as it is known, explorations included."),
    *of_comparison(),
    required("queue", Float, "Sum of the virtual queue at their decisions."),
    comment="Requests added up by hour and promise, written together with the log, for the page's "
    "charts.",
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
