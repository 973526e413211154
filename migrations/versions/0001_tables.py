"""All tables of the log and of what is kept beside it, and the rows that they begin with.

The state before any release: what changes from here on comes as a migration of its own.
"""

import os
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)
THEIR_ID = sa.String(255).with_variant(sa.String(1024), "postgresql")


def upgrade() -> None:
    op.create_table(
        "call_energy",
        _key("call_id", sa.String(80), "The call that was measured."),
        _required("position", POSITION, "Place in the log.", unique=True),
        _required("request_id", sa.String(64), "The request of that call."),
        _required("measured_at", TIME, "When it was known, UTC: a minute after its end."),
        _required("joules", sa.Float(), "Its share of what was measured above idle."),
        _optional(
            "cost", sa.Float(), "In the zoo's unit; NULL where the price is not one of energy."
        ),
        comment="One row a call whose energy was measured in service; `calls` keeps what was "
        "estimated at its end.",
    )
    op.create_index("ix_call_energy_request_id", "call_energy", ["request_id"])
    op.create_table(
        "call_sums",
        _key("day", sa.Date(), "The date of the request, UTC."),
        _key("zoo", sa.String(255), "The `model_name` that was asked for."),
        _key("service_level", sa.String(255), "The promise."),
        _key("candidate", sa.String(255), "The candidate; empty for NULL."),
        _key("model", sa.String(255), "LiteLLM's name; empty for NULL."),
        _key("role", sa.String(16), "`served` or `exploration`."),
        _required("calls", sa.Integer(), "Calls ended."),
        _required("failures", sa.Integer(), "Those of them that failed."),
        _optional(
            "cost", sa.Float(), "What they cost, measured energy included; NULL where unknown."
        ),
        _required("calls_without_cost", sa.Integer(), "Calls whose cost is unknown."),
        _optional("prompt_tokens", sa.BigInteger(), "Tokens read; NULL where nobody knows."),
        _optional("completion_tokens", sa.BigInteger(), "Tokens written; NULL where nobody knows."),
        _required(
            "unstated", sa.Integer(), "Successful calls whose cost nobody stated at their end."
        ),
        _required(
            "own", sa.Integer(), "A model's own answers: successful, and not repeated by a cache."
        ),
        _required("priced", sa.Integer(), "Own answers of known cost."),
        _required("priced_cost", sa.Float(), "What those cost."),
        _required("judged", sa.Integer(), "Own answers with a verdict."),
        _required("weight", sa.Float(), "Sum of these verdicts' weights."),
        _required("weight_squared", sa.Float(), "Sum of the squares of these weights."),
        _required("weighted_satisfaction", sa.Float(), "Sum of weight times satisfaction."),
        comment="Calls added up by day, promise and model, written together with the log.",
    )
    op.create_table(
        "calls",
        _key("call_id", sa.String(80), "The request's id, a dot, a number."),
        _required("position", POSITION, "Place in the log.", unique=True),
        _required("request_id", sa.String(64), "The request it was made for."),
        _required("ended_at", TIME, "When it ended, UTC."),
        _required("role", sa.String(16), "`served` (the user saw it) or `exploration`."),
        _required("status", sa.String(16), "`success` or `failure`."),
        _optional(
            "candidate", sa.String(255), "The candidate; NULL where a fallback outside served."
        ),
        _optional("deployment_id", sa.String(255), "LiteLLM's id of the deployment."),
        _optional("model", sa.String(255), "The model as LiteLLM names it."),
        _optional("response_id", THEIR_ID, "The `id` in the answer."),
        _optional("prompt_tokens", sa.Integer(), "Tokens read; NULL where nobody knows."),
        _optional("completion_tokens", sa.Integer(), "Tokens written; NULL where nobody knows."),
        _optional(
            "cached_tokens", sa.Integer(), "Those of the prompt that the endpoint had in its cache."
        ),
        _optional(
            "reasoning_tokens", sa.Integer(), "Those of the answer that were spent on reasoning."
        ),
        _optional("cost", sa.Float(), "In the zoo's unit; NULL where unknown, which is not zero."),
        _required("cost_source", sa.String(16), "`measured`, `counted`, `estimated` or `unknown`."),
        _optional("seconds", sa.Float(), "From the start of the call to its end."),
        _required("is_cache_hit", sa.Boolean(), "Whether LiteLLM's cache answered."),
        _optional("error", sa.Text(), "What went wrong."),
        _optional("answer", sa.Text(), "The answer's text, where `store_text` is on."),
        _optional(
            "written_tokens", sa.Integer(), "Those of the prompt that it wrote to its cache."
        ),
        comment="One row a model that was invoked: the served call, and exploration calls.",
    )
    op.create_index("ix_calls_request_id", "calls", ["request_id"])
    op.create_index("ix_calls_response_id", "calls", ["response_id"])
    op.create_table(
        "candidate_events",
        _key("event_id", sa.String(64), "Our own id of the change."),
        _required("position", POSITION, "Place in the log.", unique=True),
        _required("zoo", sa.String(255), "The zoo that the candidate is one of."),
        _required("candidate", sa.String(255), "The candidate."),
        _required(
            "number", sa.Integer(), "Number of the change among those of the candidate, from 1."
        ),
        _required("created_at", TIME, "When a worker saw it, UTC."),
        _required("change", sa.String(16), "`appeared`, `priced` or `gone`."),
        _optional("price", sa.JSON(), "What it costs, by part; NULL where it is gone."),
        sa.UniqueConstraint("zoo", "candidate", "number", name="uq_candidate_events_number"),
        comment="One row a time that a model came to a zoo, changed its price, or went, as "
        "LiteLLM's router showed it; models of the configuration that did neither have "
        "none.",
    )
    op.create_table(
        "conversation_key",
        _key("id", sa.Integer(), "Always 1."),
        _required("key", sa.String(64), "32 random bytes, in hexadecimal digits."),
        comment="One row: what the digests of prompts are keyed by, drawn when the table was "
        "made. Whoever does not know it cannot guess a prompt from its digest.",
    )
    op.create_table(
        "grading_sums",
        _key("day", sa.Date(), "The date of the gradings, UTC."),
        _key("zoo", sa.String(255), "The zoo whose answers were graded."),
        _key("judge", sa.String(255), "The model group that graded."),
        _required("gradings", sa.Integer(), "Times that it was asked."),
        _required("graded", sa.Integer(), "Those of them that it answered as it should."),
        _required("answers", sa.Integer(), "Answers that it was shown."),
        _optional("cost", sa.Float(), "In dollars, as far as it is known; NULL where none is."),
        _required("gradings_without_cost", sa.Integer(), "Gradings whose cost is unknown."),
        _optional(
            "newest_graded", POSITION, "Place in the log of the newest answered as it should."
        ),
        comment="Gradings added up by day and judge, written together with the log.",
    )
    op.create_table(
        "gradings",
        _key("grading_id", sa.String(64), "Our own id of the grading."),
        _required("position", POSITION, "Place in the log.", unique=True),
        _required("request_id", sa.String(64), "The request whose answers were graded."),
        _required("created_at", TIME, "When it ended, UTC."),
        _required("judge", sa.String(255), "The model group that graded."),
        _required("status", sa.String(16), "`graded`, `nonsense` or `failure`."),
        _required("answers", sa.Integer(), "How many answers were shown."),
        _optional("cost", sa.Float(), "In dollars, as LiteLLM priced it; NULL where unknown."),
        _optional("prompt_tokens", sa.Integer(), "Tokens read; NULL where none were reported."),
        _optional(
            "completion_tokens", sa.Integer(), "Tokens written; NULL where none were reported."
        ),
        _optional("seconds", sa.Float(), "How long the judge took."),
        _optional("error", sa.Text(), "What went wrong."),
        _optional(
            "preferred",
            sa.String(16),
            "Of a comparison, the place of the better answer: `first`, `second` or `neither`; "
            "NULL of a grading.",
        ),
        comment="One row a time that a judge was asked; what it said is in `labels`. Its cost is "
        "no part of any request's.",
    )
    op.create_index("ix_gradings_created_at", "gradings", ["created_at"])
    op.create_index("ix_gradings_request_id", "gradings", ["request_id"])
    op.create_table(
        "hourly_call_sums",
        _key("day", sa.Date(), "The date of the request, UTC."),
        _key("zoo", sa.String(255), "The `model_name` that was asked for."),
        _key("service_level", sa.String(255), "The promise."),
        _key("hour", sa.Integer(), "The hour of that day, UTC, from 0."),
        _key("candidate", sa.String(255), "The candidate; empty for NULL."),
        _key("role", sa.String(16), "`served` or `exploration`."),
        _required("calls", sa.Integer(), "Calls ended."),
        _required("failures", sa.Integer(), "Those of them that failed."),
        comment="Calls added up by hour, promise and model, written together with the log, for "
        "the page's charts.",
    )
    op.create_table(
        "hourly_request_sums",
        _key("day", sa.Date(), "The date of its requests, UTC."),
        _key("zoo", sa.String(255), "The `model_name` that was asked for."),
        _key("service_level", sa.String(255), "The promise."),
        _key("hour", sa.Integer(), "The hour of that day, UTC, from 0."),
        _key("alpha", sa.Float(), "The share promised at that time."),
        _required("requests", sa.Integer(), "Requests decided."),
        _required("answered", sa.Integer(), "Those with a verdict."),
        _required("weight", sa.Float(), "Sum of the verdicts' weights."),
        _required("weight_squared", sa.Float(), "Sum of the squares of these weights."),
        _required("weighted_satisfaction", sa.Float(), "Sum of weight times satisfaction."),
        _required(
            "cost", sa.Float(), "What all cost as far as it is known, explorations included."
        ),
        _required(
            "compared",
            sa.Integer(),
            "Successful requests of known cost, the largest's being known too.",
        ),
        _required("compared_cost", sa.Float(), "What those cost, explorations included."),
        _required(
            "compared_cost_largest", sa.Float(), "What they would have cost at the largest alone."
        ),
        _required("queue", sa.Float(), "Sum of the virtual queue at their decisions."),
        comment="Requests added up by hour and promise, written together with the log, for the "
        "page's charts.",
    )
    op.create_table(
        "label_precedence",
        _key("zoo", sa.String(255), "The zoo."),
        _key("kind", sa.String(16), "A kind of labels."),
        _optional("rank", sa.Integer(), "1 is the strongest; NULL does not count."),
        comment="Whose word counts first, as configured when a proxy last started with the zoo.",
    )
    op.create_table(
        "label_sums",
        _key("day", sa.Date(), "The date of the request, UTC."),
        _key("zoo", sa.String(255), "The `model_name` that was asked for."),
        _key("service_level", sa.String(255), "The promise."),
        _key("kind", sa.String(16), "A kind of labels."),
        _key("source", sa.String(64), "Who judged."),
        _required("labelled", sa.Integer(), "Served calls that it labelled."),
        _required("satisfaction", sa.Float(), "Sum of its newest labels' values on them."),
        _required("satisfaction_squared", sa.Float(), "Sum of the squares of these values."),
        _required(
            "counting", sa.Integer(), "How many of its labels are the verdict of their request."
        ),
        comment="What each source of labels said of the served calls, added up by day and "
        "promise, written together with the log.",
    )
    op.create_table(
        "labels",
        _key("label_id", sa.String(64), "Our own id of the verdict."),
        _required("position", POSITION, "Place in the log.", unique=True),
        _required("call_id", sa.String(80), "The call that it judges."),
        _required("request_id", sa.String(64), "The request of that call."),
        _required("created_at", TIME, "When it was given, UTC."),
        _required(
            "kind",
            sa.String(16),
            "`feedback`, `check`, `judge` or `implicit`.",
            server_default="feedback",
        ),
        _required(
            "source", sa.String(64), "Who judged: its kind, for a check a colon and its name."
        ),
        _required("value", sa.Float(), "Satisfaction from 0 to 1."),
        _required("weight", sa.Float(), "How much it counts; 0 is in the log alone."),
        _optional("comment", sa.Text(), "The user's words, or why it was judged so."),
        _optional(
            "probability",
            sa.Float(),
            "The probability of the draw that bought it: it stands for one divided by that "
            "many requests. NULL where no draw did.",
        ),
        comment="Every label ever given; which one of a call's counts, the view `verdicts` shows.",
    )
    op.create_index(
        "ix_labels_call_id_source_position", "labels", ["call_id", "source", "position"]
    )
    op.create_index("ix_labels_created_at", "labels", ["created_at"])
    op.create_index("ix_labels_request_id", "labels", ["request_id"])
    op.create_table(
        "lessons",
        _key("lesson_id", sa.String(80), "The prompt's id, a dot, a number."),
        _required("position", POSITION, "Place in the log.", unique=True),
        _required("batch", sa.String(255), "Where it comes from; what is forgotten together."),
        _required("zoo", sa.String(255), "The zoo that was taught."),
        _required("created_at", TIME, "When it was taught, UTC."),
        _required("candidate", sa.String(255), "The candidate that it tells of."),
        _required("encoder", sa.String(255), "The encoder that made the features."),
        _optional("features", sa.LargeBinary(), "Features of the prompt: little-endian float32."),
        _optional(
            "surface",
            sa.LargeBinary(),
            "What is seen of the prompt at once: little-endian float32.",
        ),
        _optional("surface_version", sa.String(64), "What the numbers of the surface mean."),
        _required("prompt_characters", sa.Integer(), "Length of the prompt's text."),
        _optional(
            "completion_tokens", sa.Float(), "Length of the answer; NULL where nobody knows."
        ),
        _required("value", sa.Float(), "Satisfaction from 0 to 1."),
        comment="What `messplus teach` added: labels that teach the predictor and count as no "
        "request.",
    )
    op.create_index("ix_lessons_batch", "lessons", ["batch"])
    op.create_table(
        "log_base",
        _key("zoo", sa.String(255), "The zoo whose state it is."),
        _required("position", POSITION, "The log is folded up to here."),
        _required("fingerprint", sa.String(64), "Of the settings that the fold depends on."),
        _optional(
            "settings",
            sa.JSON(),
            "What the fingerprint is of, by name; NULL where a version before kept it.",
        ),
        _required("taught", sa.JSON(), "How many lessons of each batch are in the state."),
        _required("created_at", TIME, "When it was kept, UTC."),
        _required("state", sa.LargeBinary(), "Predictor, queues and running means."),
        comment="What pruned rows have left behind: the fold of a zoo goes on from here, for the "
        "rows before it are not all there any more.",
    )
    op.create_table(
        "log_head",
        _key("id", sa.Integer(), "Always 1: the table has one row."),
        _required("position", POSITION, "Position of the newest record in the log."),
        _required(
            "start",
            POSITION,
            "Requests and lessons up to here are pruned; 0 where nothing was.",
            server_default="0",
        ),
        comment="Hands out log positions: a writer holds this row until it commits, so that "
        "records become visible in the order of their positions.",
    )
    op.create_table(
        "page_sign_ins",
        _key("token_hash", sa.String(64), "SHA-256 of what the browser holds."),
        _required("kind", sa.String(16), "`code` (opens one session) or `session`."),
        _required("expires_at", TIME, "Until when it is taken, UTC."),
        comment="Who may see the page: one-time codes and the sessions that they opened.",
    )
    op.create_table(
        "request_sums",
        _key("day", sa.Date(), "The date of its requests, UTC."),
        _key("zoo", sa.String(255), "The `model_name` that was asked for."),
        _key("service_level", sa.String(255), "The promise."),
        _key("alpha", sa.Float(), "The share promised at that time."),
        _required("requests", sa.Integer(), "Requests decided."),
        _required(
            "counted",
            sa.Integer(),
            "What the promise counts: those requests, or the conversations that they began.",
        ),
        _required(
            "labelled", sa.Integer(), "Those with a label of any source, whether it counts or not."
        ),
        _required("answered", sa.Integer(), "Those with a verdict."),
        _required("weight", sa.Float(), "Sum of the verdicts' weights."),
        _required("weight_squared", sa.Float(), "Sum of the squares of these weights."),
        _required("weighted_satisfaction", sa.Float(), "Sum of weight times satisfaction."),
        _required(
            "cost", sa.Float(), "What all cost as far as it is known, explorations included."
        ),
        _required("priced", sa.Integer(), "Requests whose served call has a known cost."),
        _required("priced_cost", sa.Float(), "What those cost, explorations included."),
        _required("explorations", sa.Integer(), "Requests on which something else was tried."),
        _required("exploration_cost", sa.Float(), "What the exploration calls cost."),
        _required(
            "compared",
            sa.Integer(),
            "Successful requests of known cost, the largest's being known too.",
        ),
        _required("compared_cost", sa.Float(), "What those cost, explorations included."),
        _required(
            "compared_cost_largest", sa.Float(), "What they would have cost at the largest alone."
        ),
        _required(
            "timed", sa.Integer(), "Requests whose served call has ended after a known time."
        ),
        _required("late", sa.Integer(), "Those of the timed whose features came too late."),
        _required("predicting_seconds", sa.Float(), "What the features of the timed took."),
        _required("deciding_seconds", sa.Float(), "What else their decisions took."),
        _required("call_seconds", sa.Float(), "What their served calls took."),
        _required(
            "metered", sa.Integer(), "Those of the timed whose features' energy was measured."
        ),
        _required("joules", sa.Float(), "That energy."),
        comment="Requests added up by day and promise, written together with the log: the status "
        "is read from here.",
    )
    op.create_table(
        "requests",
        _key("request_id", sa.String(64), "Our own id of the request."),
        _required("position", POSITION, "Place in the log.", unique=True),
        _required("created_at", TIME, "When it was decided, UTC."),
        _required("zoo", sa.String(255), "The `model_name` that was asked for."),
        _required(
            "service_level",
            sa.String(255),
            "The promise that it counts towards; with `:before` behind it, the stream of "
            "those served as before, which count towards none.",
        ),
        _required(
            "t", sa.BigInteger(), "Its number within the service level, from 1, without gaps."
        ),
        _required("alpha", sa.Float(), "The share promised at that time."),
        _required("policy", sa.String(64), "The policy that decided."),
        _required(
            "litellm_call_id",
            THEIR_ID,
            "LiteLLM's id (`x-litellm-call-id`). A client may set it, so it may repeat.",
        ),
        _optional("key_hash", sa.String(255), "Hash of the key that asked."),
        _optional("team_id", sa.String(255), "The key's team."),
        _required("call_type", sa.String(64), "LiteLLM's call type, such as `acompletion`."),
        _required("is_stream", sa.Boolean(), "Whether the answer was streamed."),
        _required("encoder", sa.String(255), "The encoder that made the features."),
        _optional(
            "features",
            sa.LargeBinary(),
            "Features of the prompt: little-endian float32; NULL where they came too late.",
        ),
        _required("prompt_characters", sa.Integer(), "Length of the prompt's text."),
        _required(
            "estimated_cost",
            sa.JSON(),
            "Expected cost per healthy candidate that could take it, in the zoo's unit.",
        ),
        _required(
            "estimated_satisfaction",
            sa.JSON(),
            "Predicted probability of satisfaction per healthy candidate that could take it.",
        ),
        _optional("estimated_cost_largest", sa.Float(), "Expected cost of `largest`, for savings."),
        _required("queue", sa.Float(), "The virtual queue at the decision."),
        _required(
            "chosen",
            sa.String(255),
            "The candidate that was to serve; `litellm` where that was LiteLLM's own choice.",
        ),
        _required(
            "largest",
            sa.String(255),
            "What savings compare with: the zoo's largest candidate, or the most expensive "
            "that could take the request where that one could not.",
        ),
        _required(
            "is_exploration",
            sa.Boolean(),
            "Whether something else than the best choice was tried: beside the served "
            "candidate, or (policy `adaptive`) in its place.",
        ),
        _required(
            "exploration_probability",
            sa.Float(),
            "p_t: how likely an exploration was; under `adaptive`, one in the place of the "
            "best choice.",
        ),
        _required("reason", sa.Text(), "Why this candidate, in one of a few words."),
        _required("decision_seconds", sa.Float(), "How long the decision took."),
        _optional("prompt", sa.Text(), "The prompt's text, where `store_text` is on."),
        _optional(
            "aim",
            sa.Float(),
            "What the queue aimed at: alpha, a margin, and label noise corrected.",
        ),
        _optional(
            "expected_satisfaction",
            sa.Float(),
            "Predicted for the chosen candidate: what the queue carries until a label comes.",
        ),
        _optional(
            "price",
            sa.Float(),
            "What one more satisfied request might cost; NULL under `paper`, which has V.",
        ),
        _optional(
            "propensity", sa.Float(), "The probability with which the chosen candidate was chosen."
        ),
        _optional(
            "exploration_calls",
            sa.Integer(),
            "Candidates that were to be called beside the chosen one.",
        ),
        _optional(
            "encode_seconds",
            sa.Float(),
            "How long the features took, waiting included; NULL where they came too late.",
        ),
        _optional(
            "encode_joules",
            sa.Float(),
            "Energy above idle that the features took; NULL where not measured.",
        ),
        _optional(
            "surface",
            sa.LargeBinary(),
            "What is seen of the prompt at once (length, numbers, code, turns, ...): "
            "little-endian float32, read by the heads beside the features.",
        ),
        _optional("surface_version", sa.String(64), "What the numbers of the surface mean."),
        _optional(
            "expected_t",
            sa.BigInteger(),
            "The number that it was decided with, of which its draws are: another one than "
            "`t` where several workers decided at once; NULL where it was `t`.",
        ),
        _required(
            "is_within_reach",
            sa.Boolean(),
            "Whether a candidate was expected to be able to hold alpha, as far as the policy "
            "tells.",
            server_default=sa.true(),
        ),
        _optional(
            "label_probability",
            sa.Float(),
            "The probability of the draw that bought labels of its answers; NULL where none "
            "are bought.",
        ),
        _optional(
            "eligible",
            sa.JSON(),
            "The healthy candidates that could take the request, where not all could: the "
            "others were ranked last. With one of them alone the request was forced.",
        ),
        _optional(
            "gated_by",
            sa.JSON(),
            "What told them apart, in words, such as `images`; NULL where all could.",
        ),
        _required(
            "arm",
            sa.String(16),
            "`routed`, or `before`: what served before the zoo was switched on served it, and "
            "the router decided aside.",
            server_default="routed",
        ),
        _optional(
            "would_choose",
            sa.String(255),
            "Served as before: the candidate that the router would have chosen; NULL where it "
            "was not worked out in time, and of a routed request.",
        ),
        _optional(
            "would_cost",
            sa.Float(),
            "Served as before: what that candidate, and the calls beside it, were expected to "
            "cost.",
        ),
        _optional(
            "sample_probability",
            sa.Float(),
            "Served as before: the probability of the draw that had another model called "
            "unseen; NULL where none was called.",
        ),
        _optional(
            "conversation_draw",
            sa.Float(),
            "The draw of its conversation, from 0 to 1: below the share of a canary it is "
            "routed. NULL under `mode: on`.",
        ),
        _optional("key_alias", sa.String(255), "The key's alias, where `store_identities` is on."),
        _optional("user_id", sa.String(255), "The key's user, where `store_identities` is on."),
        _optional(
            "end_user",
            sa.String(255),
            "The end user that the client named, where `store_identities` is on.",
        ),
        _optional(
            "tags",
            sa.JSON(),
            "Tags of the request, its key and team, where `store_identities` is on.",
        ),
        _optional(
            "conversation",
            sa.String(64),
            "The id of the request that began its conversation; NULL where none are held.",
        ),
        _optional(
            "line",
            sa.String(64),
            "The id of the request that began its line: one prompt that grows.",
        ),
        _optional(
            "prefix",
            sa.String(32),
            "Keyed digest of its whole prompt, with which the prompts that go on from it begin.",
        ),
        _optional("turn", sa.Integer(), "Its number in the line, from 1."),
        _optional(
            "hold",
            sa.String(16),
            "Why it was held, or why it was held no longer; NULL where it was decided.",
        ),
        _optional(
            "limits",
            sa.JSON(none_as_null=True),
            "Where its service level stood against the limits beside alpha, what they cost it, and "
            "how likely each candidate was to be late; NULL where it has none.",
        ),
        _optional(
            "counted_with",
            sa.String(64),
            "The first request of its conversation, where the promise counts conversations: that "
            "one stands for it, and has the verdict. NULL of a request that counts itself.",
        ),
        _optional(
            "session",
            sa.String(32),
            "Keyed digest of the session that the client named, where the promise counts "
            "conversations; NULL where it named none.",
        ),
        comment="One row a user's request: what was decided, from which estimates, and why.",
    )
    _index_where_known("ix_requests_counted_with", "requests", "counted_with")
    op.create_index(
        "ix_requests_created_at_level_key",
        "requests",
        ["created_at", "zoo", "service_level", "key_hash"],
    )
    op.create_index("ix_requests_level_position", "requests", ["zoo", "service_level", "position"])
    op.create_index("ix_requests_level_t", "requests", ["zoo", "service_level", "t"], unique=True)
    op.create_index("ix_requests_litellm_call_id", "requests", ["litellm_call_id"])
    _index_where_known("ix_requests_session", "requests", "session")
    op.create_table(
        "snapshots",
        _key("zoo", sa.String(255), "The zoo whose state it is."),
        _key("position", POSITION, "The log is folded up to here."),
        _required("fingerprint", sa.String(64), "Of the settings that the fold depends on."),
        _required("created_at", TIME, "When it was taken, UTC."),
        _required("state", sa.LargeBinary(), "Predictor, queues and running means."),
        _optional(
            "settings",
            sa.JSON(),
            "What the fingerprint is of, by name; NULL where a version before kept it.",
        ),
        comment="A cache of the fold of the log: a start goes on from the newest one that fits.",
    )
    op.create_table(
        "worker_counters",
        _key(
            "worker",
            sa.String(64),
            "The id of a worker process; `ended` stands for all that are gone.",
        ),
        _required("started_at", TIME, "When it began to count, UTC."),
        _required("updated_at", TIME, "When it was last heard of, UTC."),
        _required("counts", sa.JSON(), "What it counted, by name."),
        comment="What the workers of all proxies on this database counted; a worker that is gone "
        "is added to the row `ended`, which begins anew when none runs.",
    )
    op.create_table(
        "zoo_modes",
        _key("zoo", sa.String(255), "The zoo."),
        _key("revision", sa.Integer(), "Counts its changes, from 1."),
        _required("mode", sa.String(16), "`watch`, `canary` or `on`."),
        _required("share", sa.Float(), "The share of conversations routed under `canary`."),
        _optional(
            "before",
            sa.String(255),
            "What serves the others: `litellm`, a candidate, or `group:` and a member; NULL where "
            "there is no way back.",
        ),
        _required(
            "by", sa.String(255), "Who changed it: the hash of a key, `file`, or `way back`."
        ),
        _required("reason", sa.Text(), "Why."),
        _required("at", TIME, "When, UTC."),
        _required(
            "file_fingerprint",
            sa.String(64),
            "Of the value in the configuration file at that time: another value there is a change.",
        ),
        _optional("forecast", sa.JSON(), "What was forecast of routing then."),
        _optional(
            "happened", sa.JSON(), "What the routed requests came to under the revision before."
        ),
        comment="How far the router has taken over each zoo, one row a change; the newest holds. "
        "A zoo without a row is in the mode of the configuration file.",
    )
    op.execute("INSERT INTO log_head (id, position, start) VALUES (1, 0, 0)")
    key = os.urandom(32).hex()
    op.execute(f"INSERT INTO conversation_key (id, key) VALUES (1, '{key}')")
    op.execute(
        "INSERT INTO worker_counters (worker, started_at, updated_at, counts) "
        "VALUES ('ended', CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, '{}')"
    )


def downgrade() -> None:
    for table in (
        "call_energy",
        "call_sums",
        "calls",
        "candidate_events",
        "conversation_key",
        "grading_sums",
        "gradings",
        "hourly_call_sums",
        "hourly_request_sums",
        "label_precedence",
        "label_sums",
        "labels",
        "lessons",
        "log_base",
        "log_head",
        "page_sign_ins",
        "request_sums",
        "requests",
        "snapshots",
        "worker_counters",
        "zoo_modes",
    ):
        op.drop_table(table)


def _required(name: str, kind: Any, comment: str, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, comment=comment, **options)


def _optional(name: str, kind: Any, comment: str, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=True, comment=comment, **options)


def _key(name: str, kind: Any, comment: str) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, comment=comment)


def _index_where_known(name: str, table: str, column: str) -> None:
    known = sa.text(f"{column} IS NOT NULL")
    op.create_index(name, table, [column, "position"], sqlite_where=known, postgresql_where=known)
