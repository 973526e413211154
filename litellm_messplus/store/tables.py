"""The tables of the log. Every column's comment is its documentation, in the database too."""

from sqlalchemy import Column, Index, Integer, Table, UniqueConstraint

from litellm_messplus.records import (
    CallRecord,
    CandidateRecord,
    EnergyRecord,
    GradingRecord,
    LabelRecord,
    LessonRecord,
    RequestRecord,
)

# ``metadata`` knows the tables of these too.
from litellm_messplus.store import side_tables, sum_tables, zoo_modes  # noqa: F401
from litellm_messplus.store.columns import Position, required, where_known
from litellm_messplus.store.columns import metadata as metadata  # from here, with all tables in it
from litellm_messplus.store.rows import table_of

log_head = Table(
    "log_head",
    metadata,
    Column("id", Integer, primary_key=True, comment="Always 1: the table has one row."),
    required("position", Position, "Position of the newest record in the log."),
    required(
        "start",
        Position,
        "Requests and lessons up to here are pruned; 0 where nothing was.",
        server_default="0",
    ),
    comment="Hands out log positions: a writer holds this row until it commits, so that records "
    "become visible in the order of their positions.",
)

requests = table_of(
    RequestRecord,
    "requests",
    "One row a user's request: what was decided, from which estimates, and why.",
    Index("ix_requests_level_t", "zoo", "service_level", "t", unique=True),
    Index("ix_requests_created_at_level_key", "created_at", "zoo", "service_level", "key_hash"),
    Index("ix_requests_level_position", "zoo", "service_level", "position"),
    where_known("ix_requests_counted_with", "counted_with"),
    where_known("ix_requests_session", "session"),
)

calls = table_of(
    CallRecord,
    "calls",
    "One row a model that was invoked: the served call, and exploration calls.",
)

labels = table_of(
    LabelRecord,
    "labels",
    "Every label ever given; which one of a call's counts is in `verdicts`.",
    Index("ix_labels_call_id_source_position", "call_id", "source", "position"),
)

gradings = table_of(
    GradingRecord,
    "gradings",
    "One row a time that a judge was asked; what it said is in `labels`. Its cost is no part of "
    "any request's.",
)

call_energy = table_of(
    EnergyRecord,
    "call_energy",
    "One row a call whose energy was measured in service; `calls` keeps what was estimated at its "
    "end.",
)

lessons = table_of(
    LessonRecord,
    "lessons",
    "What `messplus import --lessons` added: labels that teach the predictor, and no requests.",
)

candidate_events = table_of(
    CandidateRecord,
    "candidate_events",
    "One row a time that a model came to a zoo, changed its price, or went, as LiteLLM's router "
    "showed it; models of the configuration that did neither have none.",
    UniqueConstraint("zoo", "candidate", "number", name="uq_candidate_events_number"),
)
