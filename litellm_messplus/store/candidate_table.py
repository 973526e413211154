"""The table of what became of the candidates."""

from sqlalchemy import JSON, Column, Integer, String, Table, UniqueConstraint

from litellm_messplus.store.columns import Position, UtcDateTime, metadata, optional, required

candidate_events = Table(
    "candidate_events",
    metadata,
    Column("event_id", String(64), primary_key=True, comment="Our own id of the change."),
    required("position", Position, "Place in the log.", unique=True),
    required("zoo", String(255), "The zoo that the candidate is one of."),
    required("candidate", String(255), "The candidate."),
    required("number", Integer, "Number of the change among those of the candidate, from 1."),
    required("created_at", UtcDateTime, "When a worker saw it, UTC."),
    required("change", String(16), "`appeared`, `priced` or `gone`."),
    optional("price", JSON(none_as_null=True), "What it costs, by part; NULL where it is gone."),
    UniqueConstraint("zoo", "candidate", "number", name="uq_candidate_events_number"),
    comment="One row a time that a model came to a zoo, changed its price, or went, as LiteLLM's "
    "router showed it; models of the configuration that did neither have none.",
)
