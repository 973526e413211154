"""The tables of the log, of what is derived from it, and others. Every column's comment is its
documentation, in the database too."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Date,
    Float,
    FromClause,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
    false,
)

from litellm_messplus.figures.tally import COUNTS, FIGURES
from litellm_messplus.records import (
    CallRecord,
    CandidateRecord,
    GradingRecord,
    LabelRecord,
    RequestRecord,
    served_call_id,
)
from litellm_messplus.store import zoo_modes  # noqa: F401 -- ``metadata`` knows its table too
from litellm_messplus.store.rows import (
    Position,
    UtcDateTime,
    key,
    log_table_of,
    optional,
    required,
    where_known,
)
from litellm_messplus.store.rows import metadata as metadata  # from here, it has all tables

# The log.

log_head = Table(
    "log_head",
    metadata,
    Column("id", Integer, primary_key=True, comment="Always 1: the table has one row."),
    required("position", Position, "Position of the newest record in the log."),
    required(
        "start",
        Position,
        "Requests up to here may be pruned; 0 where none is.",
        server_default="0",
    ),
    required(
        "summed",
        Position,
        "Requests up to here are in `hours`, `call_hours` and `label_days`; later ones are read as "
        "they are.",
        server_default="0",
    ),
    required(
        "precedence",
        JSON,
        "The kinds of labels that count, by zoo, the strongest first, as configured when a proxy "
        "last started with the zoo.",
        server_default="{}",
    ),
    required(
        "conversation_key",
        String(64),
        "The random key of the digests of prompts, 32 bytes in hexadecimal digits: without it, no "
        "prompt can be guessed from its digest.",
    ),
    comment="Hands out log positions: a writer holds this row until it commits, so that records "
    "become visible in the order of their positions.",
)

requests = log_table_of(
    RequestRecord,
    "requests",
    "One row per user request: what was decided, from which estimates, and why.",
    Index("ix_requests_level_t", "zoo", "service_level", "t", unique=True),
    Index("ix_requests_created_at_level_key", "created_at", "zoo", "service_level", "key_hash"),
    Index("ix_requests_level_position", "zoo", "service_level", "position"),
    where_known("ix_requests_session", "session"),
)

calls = log_table_of(
    CallRecord,
    "calls",
    "One row per invoked model: the served call, and exploration calls.",
)

labels = log_table_of(
    LabelRecord,
    "labels",
    "Every label ever given.",
    required(
        "counts",
        Boolean,
        "Whether it is the verdict: the label that counts for its call.",
        server_default=false(),
    ),
    Index("ix_labels_call_id_source_position", "call_id", "source", "position"),
)

gradings = log_table_of(
    GradingRecord,
    "gradings",
    "One row per grading by a judge; its verdicts are in `labels`. Its cost is not part of any "
    "request's.",
)

candidate_events = log_table_of(
    CandidateRecord,
    "candidate_events",
    "One row each time a model joined a zoo, changed its price, or left, as seen in LiteLLM's "
    "router; configured models that did none of these have none.",
    UniqueConstraint("zoo", "candidate", "number", name="uq_candidate_events_number"),
)

# Derived from the log: written together with it, and read in its place.
#
# The sums keep what was pruned. They are read by `store/hours.py`, which adds what came since.

outcomes = Table(
    "outcomes",
    metadata,
    key("request_id", String(64), "Our own id of the request."),
    required("position", Position, "Place in the log.", unique=True),
    required("day", Date, "The date of the request, UTC."),
    required("hour", Integer, "The hour of that day, UTC, from 0."),
    required("zoo", String(255), "The requested `model_name`."),
    required("service_level", String(255), "The promise."),
    required("alpha", Float, "The share promised at that time."),
    required("arm", String(16), "`routed`, or `before`: served as before."),
    required("is_exploration", Boolean, "Whether anything but the best choice was tried."),
    required("queue", Float, "The virtual queue at the decision."),
    optional("encode_seconds", Float, "How long the features took; NULL where they came too late."),
    required("deciding_seconds", Float, "How long the rest of the decision took."),
    required("exploration_cost", Float, "What the exploration calls cost, as far as it is known."),
    required("judging_cost", Float, "What judging its answers cost, as far as it is known."),
    optional("cost", Float, "What all calls cost, as far as it is known; NULL if none is."),
    required("unstated", Integer, "Successful calls whose cost was unknown at their end."),
    optional("served", String(255), "The candidate that served; NULL before the call has ended."),
    optional("status", String(16), "`success` or `failure`; NULL before the call has ended."),
    optional("failure", String(16), "What failed; NULL if nothing did, or if unknown."),
    optional("is_cache_hit", Boolean, "Whether LiteLLM's cache answered."),
    optional("seconds", Float, "How long the served call took."),
    optional(
        "served_cost",
        Float,
        "What serving cost: the served call, and one whose answer was replaced.",
    ),
    optional(
        "cost_largest",
        Float,
        "What the largest candidate alone would have cost; NULL if LiteLLM did not follow the "
        "router, whose choice then saved nothing.",
    ),
    required("is_labelled", Boolean, "Whether the served call has a label, counting or not."),
    optional("satisfaction", Float, "The value of the verdict on the served call."),
    optional("satisfaction_weight", Float, "How many requests that verdict stands for."),
    optional("satisfaction_kind", String(16), "Its kind."),
    where_known("ix_outcomes_failure", "failure"),
    comment="The outcome of each request, one row per request, written together with the log. "
    "Costs are in the zoo's unit, as measured where they were measured.",
)


def of_promise() -> Iterator[Column[Any]]:
    """Yield the key columns of sums."""
    yield key("day", Date, "The date of the request, UTC.")
    yield key("zoo", String(255), "The requested `model_name`.")
    yield key("service_level", String(255), "The promise.")


def of_tally() -> Iterator[Column[Any]]:
    """Yield a column for each figure of a `Tally`."""
    for name, figure in FIGURES.items():
        yield required(name, Integer if name in COUNTS else Float, figure.comment)


HOUR = "The hour of that day, UTC, from 0."
JUDGING = "judging"
"""The role of a judge's call in `call_hours`."""

hours = Table(
    "hours",
    metadata,
    *of_promise(),
    key("hour", Integer, HOUR),
    key("alpha", Float, "The share promised at that time."),
    *of_tally(),
    comment="Requests added up by hour and promise, up to `log_head.summed`.",
)

call_hours = Table(
    "call_hours",
    metadata,
    *of_promise(),
    key("hour", Integer, HOUR),
    key("candidate", String(255), "The candidate; empty for NULL."),
    key("model", String(255), "LiteLLM's name, of a judge its model group; empty for NULL."),
    key("role", String(16), "`served`, `exploration`, `replaced`, or of a judge `judging`."),
    required("calls", Integer, "Calls ended."),
    required("failures", Integer, "Those that failed; of a judge, those without a valid reply."),
    required("cost", Float, "What they cost, as far as it is known; of a judge in dollars."),
    required("calls_without_cost", Integer, "Calls whose cost is unknown."),
    required("prompt_tokens", BigInteger, "Tokens read, as far as they are known."),
    required("completion_tokens", BigInteger, "Tokens written, as far as they are known."),
    comment="Calls of the same requests added up by hour, promise and model.",
)

label_days = Table(
    "label_days",
    metadata,
    *of_promise(),
    key("kind", String(16), "A kind of labels."),
    key("source", String(64), "Who judged."),
    required("labelled", Integer, "Served calls that it labelled."),
    required("satisfaction", Float, "Sum of its newest labels' values on them."),
    required("counting", Integer, "How many of its labels are the verdict of their request."),
    comment="The labels of each source on the served calls of the same requests, added up by day "
    "and promise.",
)

# Other tables: snapshots, workers and sign-ins.

page_sign_ins = Table(
    "page_sign_ins",
    metadata,
    key("token_hash", String(64), "SHA-256 of the browser's token."),
    required("kind", String(16), "`code` (opens one session) or `session`."),
    required("expires_at", UtcDateTime, "Until when it is accepted, UTC."),
    comment="Who may see the page: one-time codes and the sessions that they opened.",
)

snapshots = Table(
    "snapshots",
    metadata,
    key("zoo", String(255), "The zoo whose state it is."),
    Column("position", Position, primary_key=True, comment="The log is folded up to here."),
    required("fingerprint", String(64), "Fingerprint of the settings that the fold depends on."),
    required("created_at", UtcDateTime, "When it was taken, UTC."),
    required("state", LargeBinary, "Predictor, queues and running means."),
    comment="A cache of the fold of the log: a start continues from the newest that fits.",
)


def served_call(of: FromClause) -> ColumnElement[str]:
    """Return the id of the served call of each request that ``of`` names."""
    found: ColumnElement[str] = of.c.request_id + served_call_id("")
    return found
