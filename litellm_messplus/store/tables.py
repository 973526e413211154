"""The tables. Every column's comment is its documentation, in the database too."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Dialect,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.types import TypeDecorator

metadata = MetaData()


class UtcDateTime(TypeDecorator[datetime]):
    """A point in time: aware in Python, UTC in the database, on SQLite (which has no zones) too."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Position = BigInteger().with_variant(Integer(), "sqlite")
TheirId = String(255).with_variant(String(1024), "postgresql")
"""Of others, who make it as long as they like; SQLite takes any length."""


def _required(name: str, kind: Any, comment: str, **options: Any) -> Column[Any]:
    return Column(name, kind, nullable=False, comment=comment, **options)


def _optional(name: str, kind: Any, comment: str, **options: Any) -> Column[Any]:
    return Column(name, kind, nullable=True, comment=comment, **options)


log_head = Table(
    "log_head",
    metadata,
    Column("id", Integer, primary_key=True, comment="Always 1: the table has one row."),
    _required("position", Position, "Position of the newest record in the log."),
    _required(
        "start",
        Position,
        "Requests and lessons up to here are pruned; 0 where nothing was.",
        server_default="0",
    ),
    comment="Hands out log positions: a writer holds this row until it commits, so that records "
    "become visible in the order of their positions.",
)

requests = Table(
    "requests",
    metadata,
    Column("request_id", String(64), primary_key=True, comment="Our own id of the request."),
    _required("position", Position, "Place in the log.", unique=True),
    _required("created_at", UtcDateTime, "When it was decided, UTC."),
    _required("zoo", String(255), "The `model_name` that was asked for."),
    _required("service_level", String(255), "The promise that it counts towards."),
    _required("t", BigInteger, "Its number within the service level, from 1, without gaps."),
    _required("alpha", Float, "The share promised at that time."),
    _required("policy", String(64), "The policy that decided."),
    _required(
        "litellm_call_id",
        TheirId,
        "LiteLLM's id (`x-litellm-call-id`). A client may set it, so it may repeat.",
        index=True,
    ),
    _optional("key_hash", String(255), "Hash of the key that asked."),
    _optional("team_id", String(255), "The key's team."),
    _required("call_type", String(64), "LiteLLM's call type, such as `acompletion`."),
    _required("is_stream", Boolean, "Whether the answer was streamed."),
    _required("encoder", String(255), "The encoder that made the features."),
    _optional(
        "features",
        LargeBinary,
        "Features of the prompt: little-endian float32; NULL where they came too late.",
    ),
    _required("prompt_characters", Integer, "Length of the prompt's text."),
    _required("estimated_cost", JSON, "Expected cost per healthy candidate, in the zoo's unit."),
    _required(
        "estimated_satisfaction",
        JSON,
        "Predicted probability of satisfaction per healthy candidate.",
    ),
    _optional(
        "estimated_cost_largest", Float, "Expected cost of the largest candidate, for savings."
    ),
    _required("queue", Float, "The virtual queue at the decision."),
    _required("chosen", String(255), "The candidate that was to serve."),
    _required("largest", String(255), "The zoo's largest candidate at that time."),
    _required(
        "is_exploration",
        Boolean,
        "Whether something else than the best choice was tried: beside the served candidate, or "
        "(policy `adaptive`) in its place.",
    ),
    _required(
        "exploration_probability",
        Float,
        "p_t: how likely an exploration was; under `adaptive`, one in the place of the best "
        "choice.",
    ),
    _required("reason", Text, "Why this candidate, in words."),
    _required("decision_seconds", Float, "How long the decision took."),
    _optional("prompt", Text, "The prompt's text, where `store_text` is on."),
    _optional("aim", Float, "What the queue aimed at: alpha, a margin, and label noise corrected."),
    _optional(
        "expected_satisfaction",
        Float,
        "Predicted for the chosen candidate: what the queue carries until a label comes.",
    ),
    _optional(
        "price",
        Float,
        "What one more satisfied request might cost; NULL under `paper`, which has V.",
    ),
    _optional("propensity", Float, "The probability with which the chosen candidate was chosen."),
    _optional(
        "exploration_calls", Integer, "Candidates that were to be called beside the chosen one."
    ),
    _optional(
        "encode_seconds",
        Float,
        "How long the features took, waiting included; NULL where they came too late.",
    ),
    _optional(
        "encode_joules", Float, "Energy above idle that the features took; NULL where not measured."
    ),
    _optional(
        "surface",
        LargeBinary,
        "What is seen of the prompt at once (length, numbers, code, turns, ...): little-endian "
        "float32, read by the heads beside the features.",
    ),
    _optional("surface_version", String(64), "What the numbers of the surface mean."),
    _optional(
        "expected_t",
        BigInteger,
        "The number that it was decided with, of which its draws are: another one than `t` where "
        "several workers decided at once; NULL where it was `t`.",
    ),
    Index("ix_requests_level_t", "zoo", "service_level", "t", unique=True),
    Index("ix_requests_created_at_level_key", "created_at", "zoo", "service_level", "key_hash"),
    Index("ix_requests_level_position", "zoo", "service_level", "position"),
    comment="One row a user's request: what was decided, from which estimates, and why.",
)

calls = Table(
    "calls",
    metadata,
    Column("call_id", String(80), primary_key=True, comment="The request's id, a dot, a number."),
    _required("position", Position, "Place in the log.", unique=True),
    _required("request_id", String(64), "The request it was made for.", index=True),
    _required("ended_at", UtcDateTime, "When it ended, UTC."),
    _required("role", String(16), "`served` (the user saw it) or `exploration`."),
    _required("status", String(16), "`success` or `failure`."),
    _optional("candidate", String(255), "The candidate; NULL where a fallback outside served."),
    _optional("deployment_id", String(255), "LiteLLM's id of the deployment."),
    _optional("model", String(255), "The model as LiteLLM names it."),
    _optional("response_id", TheirId, "The `id` in the answer.", index=True),
    _optional("prompt_tokens", Integer, "Tokens read; NULL where nobody knows."),
    _optional("completion_tokens", Integer, "Tokens written; NULL where nobody knows."),
    _optional("cached_tokens", Integer, "Those of the prompt that the endpoint had in its cache."),
    _optional("reasoning_tokens", Integer, "Those of the answer that were spent on reasoning."),
    _optional("cost", Float, "In the zoo's unit; NULL where unknown, which is not zero."),
    _required("cost_source", String(16), "`measured`, `counted`, `estimated` or `unknown`."),
    _optional("seconds", Float, "From the start of the call to its end."),
    _required("is_cache_hit", Boolean, "Whether LiteLLM's cache answered."),
    _optional("error", Text, "What went wrong."),
    _optional("answer", Text, "The answer's text, where `store_text` is on."),
    comment="One row a model that was invoked: the served call, and exploration calls.",
)

labels = Table(
    "labels",
    metadata,
    Column("label_id", String(64), primary_key=True, comment="Our own id of the verdict."),
    _required("position", Position, "Place in the log.", unique=True),
    _required("call_id", String(80), "The call that it judges."),
    _required("request_id", String(64), "The request of that call.", index=True),
    _required("created_at", UtcDateTime, "When it was given, UTC.", index=True),
    _required(
        "kind",
        String(16),
        "`feedback`, `check`, `judge` or `implicit`.",
        server_default="feedback",
    ),
    _required("source", String(64), "Who judged: its kind, for a check a colon and its name."),
    _required("value", Float, "Satisfaction from 0 to 1."),
    _required("weight", Float, "How much it counts; 0 is in the log alone."),
    _optional("comment", Text, "The user's words, or why it was judged so."),
    Index("ix_labels_call_id_source_position", "call_id", "source", "position"),
    comment="Every label ever given; which one of a call's counts, the view `verdicts` shows.",
)

label_precedence = Table(
    "label_precedence",
    metadata,
    Column("zoo", String(255), primary_key=True, comment="The zoo."),
    Column("kind", String(16), primary_key=True, comment="A kind of labels."),
    _optional("rank", Integer, "1 is the strongest; NULL does not count."),
    comment="Whose word counts first, as configured when a proxy last started with the zoo.",
)

gradings = Table(
    "gradings",
    metadata,
    Column("grading_id", String(64), primary_key=True, comment="Our own id of the grading."),
    _required("position", Position, "Place in the log.", unique=True),
    _required("request_id", String(64), "The request whose answers were graded.", index=True),
    _required("created_at", UtcDateTime, "When it ended, UTC.", index=True),
    _required("judge", String(255), "The model group that graded."),
    _required("status", String(16), "`graded`, `nonsense` or `failure`."),
    _required("answers", Integer, "How many answers were shown."),
    _optional("cost", Float, "In dollars, as LiteLLM priced it; NULL where unknown."),
    _optional("prompt_tokens", Integer, "Tokens read; NULL where none were reported."),
    _optional("completion_tokens", Integer, "Tokens written; NULL where none were reported."),
    _optional("seconds", Float, "How long the judge took."),
    _optional("error", Text, "What went wrong."),
    comment="One row a time that a judge was asked; what it said is in `labels`. Its cost is no "
    "part of any request's.",
)

call_energy = Table(
    "call_energy",
    metadata,
    Column("call_id", String(80), primary_key=True, comment="The call that was measured."),
    _required("position", Position, "Place in the log.", unique=True),
    _required("request_id", String(64), "The request of that call.", index=True),
    _required("measured_at", UtcDateTime, "When it was known, UTC: a minute after its end."),
    _required("joules", Float, "Its share of what was measured above idle."),
    _optional("cost", Float, "In the zoo's unit; NULL where the price is not one of energy."),
    comment="One row a call whose energy was measured in service; `calls` keeps what was estimated "
    "at its end.",
)

lessons = Table(
    "lessons",
    metadata,
    Column("lesson_id", String(80), primary_key=True, comment="The prompt's id, a dot, a number."),
    _required("position", Position, "Place in the log.", unique=True),
    _required("batch", String(255), "Where it comes from; what is forgotten together.", index=True),
    _required("zoo", String(255), "The zoo that was taught."),
    _required("created_at", UtcDateTime, "When it was taught, UTC."),
    _required("candidate", String(255), "The candidate that it tells of."),
    _required("encoder", String(255), "The encoder that made the features."),
    _optional("features", LargeBinary, "Features of the prompt: little-endian float32."),
    _optional("surface", LargeBinary, "What is seen of the prompt at once: little-endian float32."),
    _optional("surface_version", String(64), "What the numbers of the surface mean."),
    _required("prompt_characters", Integer, "Length of the prompt's text."),
    _optional("completion_tokens", Float, "Length of the answer; NULL where nobody knows."),
    _required("value", Float, "Satisfaction from 0 to 1."),
    comment="What `messplus teach` added: labels that teach the predictor and count as no request.",
)

request_sums = Table(
    "request_sums",
    metadata,
    Column("day", Date, primary_key=True, comment="The date of its requests, UTC."),
    Column("zoo", String(255), primary_key=True, comment="The `model_name` that was asked for."),
    Column("service_level", String(255), primary_key=True, comment="The promise."),
    Column("alpha", Float, primary_key=True, comment="The share promised at that time."),
    _required("requests", Integer, "Requests decided."),
    _required("labelled", Integer, "Those with a label of any source, whether it counts or not."),
    _required("answered", Integer, "Those with a verdict."),
    _required("weight", Float, "Sum of the verdicts' weights."),
    _required("weight_squared", Float, "Sum of the squares of these weights."),
    _required("weighted_satisfaction", Float, "Sum of weight times satisfaction."),
    _required("cost", Float, "What all cost as far as it is known, explorations included."),
    _required("priced", Integer, "Requests whose served call has a known cost."),
    _required("priced_cost", Float, "What those cost, explorations included."),
    _required("explorations", Integer, "Requests on which something else was tried."),
    _required("exploration_cost", Float, "What the exploration calls cost."),
    _required(
        "compared", Integer, "Successful requests of known cost, the largest's being known too."
    ),
    _required("compared_cost", Float, "What those cost, explorations included."),
    _required("compared_cost_largest", Float, "What they would have cost at the largest alone."),
    _required("timed", Integer, "Requests whose served call has ended after a known time."),
    _required("late", Integer, "Those of the timed whose features came too late."),
    _required("predicting_seconds", Float, "What the features of the timed took."),
    _required("deciding_seconds", Float, "What else their decisions took."),
    _required("call_seconds", Float, "What their served calls took."),
    _required("metered", Integer, "Those of the timed whose features' energy was measured."),
    _required("joules", Float, "That energy."),
    comment="Requests added up by day and promise, written together with the log: the status is "
    "read from here.",
)

call_sums = Table(
    "call_sums",
    metadata,
    Column("day", Date, primary_key=True, comment="The date of the request, UTC."),
    Column("zoo", String(255), primary_key=True, comment="The `model_name` that was asked for."),
    Column("service_level", String(255), primary_key=True, comment="The promise."),
    Column("candidate", String(255), primary_key=True, comment="The candidate; empty for NULL."),
    Column("model", String(255), primary_key=True, comment="LiteLLM's name; empty for NULL."),
    Column("role", String(16), primary_key=True, comment="`served` or `exploration`."),
    _required("calls", Integer, "Calls ended."),
    _required("failures", Integer, "Those of them that failed."),
    _optional("cost", Float, "What they cost, measured energy included; NULL where unknown."),
    _required("calls_without_cost", Integer, "Calls whose cost is unknown."),
    _optional("prompt_tokens", BigInteger, "Tokens read; NULL where nobody knows."),
    _optional("completion_tokens", BigInteger, "Tokens written; NULL where nobody knows."),
    _required("unstated", Integer, "Successful calls whose cost nobody stated at their end."),
    _required("own", Integer, "A model's own answers: successful, and not repeated by a cache."),
    _required("priced", Integer, "Own answers of known cost."),
    _required("priced_cost", Float, "What those cost."),
    _required("judged", Integer, "Own answers with a verdict."),
    _required("weight", Float, "Sum of these verdicts' weights."),
    _required("weight_squared", Float, "Sum of the squares of these weights."),
    _required("weighted_satisfaction", Float, "Sum of weight times satisfaction."),
    comment="Calls added up by day, promise and model, written together with the log.",
)

label_sums = Table(
    "label_sums",
    metadata,
    Column("day", Date, primary_key=True, comment="The date of the request, UTC."),
    Column("zoo", String(255), primary_key=True, comment="The `model_name` that was asked for."),
    Column("service_level", String(255), primary_key=True, comment="The promise."),
    Column("kind", String(16), primary_key=True, comment="A kind of labels."),
    Column("source", String(64), primary_key=True, comment="Who judged."),
    _required("labelled", Integer, "Served calls that it labelled."),
    _required("satisfaction", Float, "Sum of its newest labels' values on them."),
    _required("satisfaction_squared", Float, "Sum of the squares of these values."),
    _required("counting", Integer, "How many of its labels are the verdict of their request."),
    comment="What each source of labels said of the served calls, added up by day and promise, "
    "written together with the log.",
)

grading_sums = Table(
    "grading_sums",
    metadata,
    Column("day", Date, primary_key=True, comment="The date of the gradings, UTC."),
    Column("zoo", String(255), primary_key=True, comment="The zoo whose answers were graded."),
    Column("judge", String(255), primary_key=True, comment="The model group that graded."),
    _required("gradings", Integer, "Times that it was asked."),
    _required("graded", Integer, "Those of them that it answered as it should."),
    _required("answers", Integer, "Answers that it was shown."),
    _optional("cost", Float, "In dollars, as far as it is known; NULL where none is."),
    _required("gradings_without_cost", Integer, "Gradings whose cost is unknown."),
    _optional("newest_graded", Position, "Place in the log of the newest answered as it should."),
    comment="Gradings added up by day and judge, written together with the log.",
)

hourly_request_sums = Table(
    "hourly_request_sums",
    metadata,
    Column("day", Date, primary_key=True, comment="The date of its requests, UTC."),
    Column("zoo", String(255), primary_key=True, comment="The `model_name` that was asked for."),
    Column("service_level", String(255), primary_key=True, comment="The promise."),
    Column("hour", Integer, primary_key=True, comment="The hour of that day, UTC, from 0."),
    Column("alpha", Float, primary_key=True, comment="The share promised at that time."),
    _required("requests", Integer, "Requests decided."),
    _required("answered", Integer, "Those with a verdict."),
    _required("weight", Float, "Sum of the verdicts' weights."),
    _required("weight_squared", Float, "Sum of the squares of these weights."),
    _required("weighted_satisfaction", Float, "Sum of weight times satisfaction."),
    _required("cost", Float, "What all cost as far as it is known, explorations included."),
    _required(
        "compared", Integer, "Successful requests of known cost, the largest's being known too."
    ),
    _required("compared_cost", Float, "What those cost, explorations included."),
    _required("compared_cost_largest", Float, "What they would have cost at the largest alone."),
    _required("queue", Float, "Sum of the virtual queue at their decisions."),
    comment="Requests added up by hour and promise, written together with the log, for the page's "
    "charts.",
)

hourly_call_sums = Table(
    "hourly_call_sums",
    metadata,
    Column("day", Date, primary_key=True, comment="The date of the request, UTC."),
    Column("zoo", String(255), primary_key=True, comment="The `model_name` that was asked for."),
    Column("service_level", String(255), primary_key=True, comment="The promise."),
    Column("hour", Integer, primary_key=True, comment="The hour of that day, UTC, from 0."),
    Column("candidate", String(255), primary_key=True, comment="The candidate; empty for NULL."),
    Column("role", String(16), primary_key=True, comment="`served` or `exploration`."),
    _required("calls", Integer, "Calls ended."),
    _required("failures", Integer, "Those of them that failed."),
    comment="Calls added up by hour, promise and model, written together with the log, for the "
    "page's charts.",
)

page_sign_ins = Table(
    "page_sign_ins",
    metadata,
    Column(
        "token_hash", String(64), primary_key=True, comment="SHA-256 of what the browser holds."
    ),
    _required("kind", String(16), "`code` (opens one session) or `session`."),
    _required("expires_at", UtcDateTime, "Until when it is taken, UTC."),
    comment="Who may see the page: one-time codes and the sessions that they opened.",
)

SETTINGS = "What the fingerprint is of, by name; NULL where a version before kept it."

snapshots = Table(
    "snapshots",
    metadata,
    Column("zoo", String(255), primary_key=True, comment="The zoo whose state it is."),
    Column("position", Position, primary_key=True, comment="The log is folded up to here."),
    _required("fingerprint", String(64), "Of the settings that the fold depends on."),
    _required("created_at", UtcDateTime, "When it was taken, UTC."),
    _required("state", LargeBinary, "Predictor, queues and running means."),
    _optional("settings", JSON, SETTINGS),
    comment="A cache of the fold of the log: a start goes on from the newest one that fits.",
)

log_base = Table(
    "log_base",
    metadata,
    Column("zoo", String(255), primary_key=True, comment="The zoo whose state it is."),
    _required("position", Position, "The log is folded up to here."),
    _required("fingerprint", String(64), "Of the settings that the fold depends on."),
    _optional("settings", JSON, SETTINGS),
    _required("taught", JSON, "How many lessons of each batch are in the state."),
    _required("created_at", UtcDateTime, "When it was kept, UTC."),
    _required("state", LargeBinary, "Predictor, queues and running means."),
    comment="What pruned rows have left behind: the fold of a zoo goes on from here, for the rows "
    "before it are not all there any more.",
)

worker_counters = Table(
    "worker_counters",
    metadata,
    Column(
        "worker",
        String(64),
        primary_key=True,
        comment="The id of a worker process; `ended` stands for all that are gone.",
    ),
    _required("started_at", UtcDateTime, "When it began to count, UTC."),
    _required("updated_at", UtcDateTime, "When it was last heard of, UTC."),
    _required("counts", JSON, "What it counted, by name."),
    comment="What the workers of all proxies on this database counted; a worker that is gone is "
    "added to the row `ended`, which begins anew when none runs.",
)
