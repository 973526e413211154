"""The tables of the log. Every column's comment is its documentation, in the database too."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
    true,
)

# ``metadata`` knows the tables of these too.
from litellm_messplus.store import side_tables, sum_tables, zoo_modes  # noqa: F401
from litellm_messplus.store.columns import (
    Position,
    TheirId,
    UtcDateTime,
    optional,
    required,
    where_known,
)
from litellm_messplus.store.columns import metadata as metadata  # from here, with all tables in it

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

requests = Table(
    "requests",
    metadata,
    Column("request_id", String(64), primary_key=True, comment="Our own id of the request."),
    required("position", Position, "Place in the log.", unique=True),
    required("created_at", UtcDateTime, "When it was decided, UTC."),
    required("zoo", String(255), "The `model_name` that was asked for."),
    required(
        "service_level",
        String(255),
        "The promise that it counts towards; with `:before` behind it, the stream of those served "
        "as before, which count towards none.",
    ),
    required("t", BigInteger, "Its number within the service level, from 1, without gaps."),
    required("alpha", Float, "The share promised at that time."),
    required("policy", String(64), "The policy that decided."),
    required(
        "litellm_call_id",
        TheirId,
        "LiteLLM's id (`x-litellm-call-id`). A client may set it, so it may repeat.",
        index=True,
    ),
    optional("key_hash", String(255), "Hash of the key that asked."),
    optional("team_id", String(255), "The key's team."),
    required("call_type", String(64), "LiteLLM's call type, such as `acompletion`."),
    required("is_stream", Boolean, "Whether the answer was streamed."),
    required("encoder", String(255), "The encoder that made the features."),
    optional(
        "features",
        LargeBinary,
        "Features of the prompt: little-endian float32; NULL where they came too late.",
    ),
    required("prompt_characters", Integer, "Length of the prompt's text."),
    required(
        "estimated_cost",
        JSON,
        "Expected cost per healthy candidate that could take it, in the zoo's unit.",
    ),
    required(
        "estimated_satisfaction",
        JSON,
        "Predicted probability of satisfaction per healthy candidate that could take it.",
    ),
    optional("estimated_cost_largest", Float, "Expected cost of `largest`, for savings."),
    required("queue", Float, "The virtual queue at the decision."),
    required(
        "chosen",
        String(255),
        "The candidate that was to serve; `litellm` where that was LiteLLM's own choice.",
    ),
    required(
        "largest",
        String(255),
        "What savings compare with: the zoo's largest candidate, or the most expensive that could "
        "take the request where that one could not.",
    ),
    required(
        "is_exploration",
        Boolean,
        "Whether something else than the best choice was tried: beside the served candidate, or "
        "(policy `adaptive`) in its place.",
    ),
    required(
        "exploration_probability",
        Float,
        "p_t: how likely an exploration was; under `adaptive`, one in the place of the best "
        "choice.",
    ),
    required("reason", Text, "Why this candidate, in one of a few words."),
    required("decision_seconds", Float, "How long the decision took."),
    optional("prompt", Text, "The prompt's text, where `store_text` is on."),
    optional("aim", Float, "What the queue aimed at: alpha, a margin, and label noise corrected."),
    optional(
        "expected_satisfaction",
        Float,
        "Predicted for the chosen candidate: what the queue carries until a label comes.",
    ),
    optional(
        "price",
        Float,
        "What one more satisfied request might cost; NULL under `paper`, which has V.",
    ),
    optional("propensity", Float, "The probability with which the chosen candidate was chosen."),
    optional(
        "exploration_calls", Integer, "Candidates that were to be called beside the chosen one."
    ),
    optional(
        "encode_seconds",
        Float,
        "How long the features took, waiting included; NULL where they came too late.",
    ),
    optional(
        "encode_joules", Float, "Energy above idle that the features took; NULL where not measured."
    ),
    optional(
        "surface",
        LargeBinary,
        "What is seen of the prompt at once (length, numbers, code, turns, ...): little-endian "
        "float32, read by the heads beside the features.",
    ),
    optional("surface_version", String(64), "What the numbers of the surface mean."),
    optional(
        "expected_t",
        BigInteger,
        "The number that it was decided with, of which its draws are: another one than `t` where "
        "several workers decided at once; NULL where it was `t`.",
    ),
    required(
        "is_within_reach",
        Boolean,
        "Whether a candidate was expected to be able to hold alpha, as far as the policy tells.",
        server_default=true(),
    ),
    optional(
        "label_probability",
        Float,
        "The probability of the draw that bought labels of its answers; NULL where none are "
        "bought.",
    ),
    optional(
        "eligible",
        JSON(none_as_null=True),
        "The healthy candidates that could take the request, where not all could: the others were "
        "ranked last. With one of them alone the request was forced.",
    ),
    optional(
        "gated_by",
        JSON(none_as_null=True),
        "What told them apart, in words, such as `images`; NULL where all could.",
    ),
    required(
        "arm",
        String(16),
        "`routed`, or `before`: what served before the zoo was switched on served it, and the "
        "router decided aside.",
        server_default="routed",
    ),
    optional(
        "would_choose",
        String(255),
        "Served as before: the candidate that the router would have chosen; NULL where it was not "
        "worked out in time, and of a routed request.",
    ),
    optional(
        "would_cost",
        Float,
        "Served as before: what that candidate, and the calls beside it, were expected to cost.",
    ),
    optional(
        "sample_probability",
        Float,
        "Served as before: the probability of the draw that had another model called unseen; NULL "
        "where none was called.",
    ),
    optional(
        "conversation_draw",
        Float,
        "The draw of its conversation, from 0 to 1: below the share of a canary it is routed. NULL "
        "under `mode: on`.",
    ),
    optional("key_alias", String(255), "The key's alias, where `store_identities` is on."),
    optional("user_id", String(255), "The key's user, where `store_identities` is on."),
    optional(
        "end_user",
        String(255),
        "The end user that the client named, where `store_identities` is on.",
    ),
    optional(
        "tags",
        JSON(none_as_null=True),
        "Tags of the request, its key and team, where `store_identities` is on.",
    ),
    optional(
        "conversation",
        String(64),
        "The id of the request that began its conversation; NULL where none are held.",
    ),
    optional(
        "line", String(64), "The id of the request that began its line: one prompt that grows."
    ),
    optional(
        "prefix",
        String(32),
        "Keyed digest of its whole prompt, with which the prompts that go on from it begin.",
    ),
    optional("turn", Integer, "Its number in the line, from 1."),
    optional(
        "hold",
        String(16),
        "Why it was held, or why it was held no longer; NULL where it was decided.",
    ),
    optional(
        "limits",
        JSON(none_as_null=True),
        "Where its service level stood against the limits beside alpha, what they cost it, and how "
        "likely each candidate was to be late; NULL where it has none.",
    ),
    optional(
        "counted_with",
        String(64),
        "The first request of its conversation, where the promise counts conversations: that one "
        "stands for it, and has the verdict. NULL of a request that counts itself.",
    ),
    optional(
        "session",
        String(32),
        "Keyed digest of the session that the client named, where the promise counts "
        "conversations; NULL where it named none.",
    ),
    Index("ix_requests_level_t", "zoo", "service_level", "t", unique=True),
    Index("ix_requests_created_at_level_key", "created_at", "zoo", "service_level", "key_hash"),
    Index("ix_requests_level_position", "zoo", "service_level", "position"),
    where_known("ix_requests_counted_with", "counted_with"),
    where_known("ix_requests_session", "session"),
    comment="One row a user's request: what was decided, from which estimates, and why.",
)

calls = Table(
    "calls",
    metadata,
    Column("call_id", String(80), primary_key=True, comment="The request's id, a dot, a number."),
    required("position", Position, "Place in the log.", unique=True),
    required("request_id", String(64), "The request it was made for.", index=True),
    required("ended_at", UtcDateTime, "When it ended, UTC."),
    required("role", String(16), "`served` (the user saw it) or `exploration`."),
    required("status", String(16), "`success` or `failure`."),
    optional("candidate", String(255), "The candidate; NULL where a fallback outside served."),
    optional("deployment_id", String(255), "LiteLLM's id of the deployment."),
    optional("model", String(255), "The model as LiteLLM names it."),
    optional("response_id", TheirId, "The `id` in the answer.", index=True),
    optional("prompt_tokens", Integer, "Tokens read; NULL where nobody knows."),
    optional("completion_tokens", Integer, "Tokens written; NULL where nobody knows."),
    optional("cached_tokens", Integer, "Those of the prompt that the endpoint had in its cache."),
    optional("reasoning_tokens", Integer, "Those of the answer that were spent on reasoning."),
    optional("cost", Float, "In the zoo's unit; NULL where unknown, which is not zero."),
    required("cost_source", String(16), "`measured`, `counted`, `estimated` or `unknown`."),
    optional("seconds", Float, "From the start of the call to its end."),
    required("is_cache_hit", Boolean, "Whether LiteLLM's cache answered."),
    optional("error", Text, "What went wrong."),
    optional("answer", Text, "The answer's text, where `store_text` is on."),
    optional("written_tokens", Integer, "Those of the prompt that it wrote to its cache."),
    optional(
        "failure",
        String(16),
        "Who failed: `upstream`, `no_deployment`, `deadline`, `client_gone`, or `refused` where "
        "the request itself was at fault; NULL where an answer came.",
    ),
    where_known("ix_calls_failure", "failure"),
    comment="One row a model that was invoked: the served call, and exploration calls.",
)

labels = Table(
    "labels",
    metadata,
    Column("label_id", String(64), primary_key=True, comment="Our own id of the verdict."),
    required("position", Position, "Place in the log.", unique=True),
    required("call_id", String(80), "The call that it judges."),
    required("request_id", String(64), "The request of that call.", index=True),
    required("created_at", UtcDateTime, "When it was given, UTC.", index=True),
    required(
        "kind",
        String(16),
        "`feedback`, `check`, `judge` or `implicit`.",
        server_default="feedback",
    ),
    required("source", String(64), "Who judged: its kind, for a check a colon and its name."),
    required("value", Float, "Satisfaction from 0 to 1."),
    required("weight", Float, "How much it counts; 0 is in the log alone."),
    optional("comment", Text, "The user's words, or why it was judged so."),
    optional(
        "probability",
        Float,
        "The probability of the draw that bought it: it stands for one divided by that many "
        "requests. NULL where no draw did.",
    ),
    Index("ix_labels_call_id_source_position", "call_id", "source", "position"),
    comment="Every label ever given; which one of a call's counts, the view `verdicts` shows.",
)

gradings = Table(
    "gradings",
    metadata,
    Column("grading_id", String(64), primary_key=True, comment="Our own id of the grading."),
    required("position", Position, "Place in the log.", unique=True),
    required("request_id", String(64), "The request whose answers were graded.", index=True),
    required("created_at", UtcDateTime, "When it ended, UTC.", index=True),
    required("judge", String(255), "The model group that graded."),
    required("status", String(16), "`graded`, `nonsense` or `failure`."),
    required("answers", Integer, "How many answers were shown."),
    optional("cost", Float, "In dollars, as LiteLLM priced it; NULL where unknown."),
    optional("prompt_tokens", Integer, "Tokens read; NULL where none were reported."),
    optional("completion_tokens", Integer, "Tokens written; NULL where none were reported."),
    optional("seconds", Float, "How long the judge took."),
    optional("error", Text, "What went wrong."),
    optional(
        "preferred",
        String(16),
        "Of a comparison, the place of the better answer: `first`, `second` or `neither`; NULL of "
        "a grading.",
    ),
    comment="One row a time that a judge was asked; what it said is in `labels`. Its cost is no "
    "part of any request's.",
)

call_energy = Table(
    "call_energy",
    metadata,
    Column("call_id", String(80), primary_key=True, comment="The call that was measured."),
    required("position", Position, "Place in the log.", unique=True),
    required("request_id", String(64), "The request of that call.", index=True),
    required("measured_at", UtcDateTime, "When it was known, UTC: a minute after its end."),
    required("joules", Float, "Its share of what was measured above idle."),
    optional("cost", Float, "In the zoo's unit; NULL where the price is not one of energy."),
    comment="One row a call whose energy was measured in service; `calls` keeps what was estimated "
    "at its end.",
)

lessons = Table(
    "lessons",
    metadata,
    Column("lesson_id", String(80), primary_key=True, comment="The prompt's id, a dot, a number."),
    required("position", Position, "Place in the log.", unique=True),
    required("batch", String(255), "Where it comes from; what is forgotten together.", index=True),
    required("zoo", String(255), "The zoo that was taught."),
    required("created_at", UtcDateTime, "When it was taught, UTC."),
    required("candidate", String(255), "The candidate that it tells of."),
    required("encoder", String(255), "The encoder that made the features."),
    optional("features", LargeBinary, "Features of the prompt: little-endian float32."),
    optional("surface", LargeBinary, "What is seen of the prompt at once: little-endian float32."),
    optional("surface_version", String(64), "What the numbers of the surface mean."),
    required("prompt_characters", Integer, "Length of the prompt's text."),
    optional("completion_tokens", Float, "Length of the answer; NULL where nobody knows."),
    required("value", Float, "Satisfaction from 0 to 1."),
    comment="What `messplus teach` added: labels that teach the predictor and count as no request.",
)

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
