"""The log of requests, calls and labels; snapshots; and the views that people ask."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

VIEWS = {
    "current_labels": """
        SELECT label_id, call_id, request_id, created_at, source, value, weight, comment
        FROM labels
        WHERE position = (
            SELECT MAX(newer.position) FROM labels AS newer
            WHERE newer.call_id = labels.call_id AND newer.source = labels.source
        )
    """,
    "request_outcomes": """
        SELECT
            requests.request_id,
            requests.created_at,
            {day} AS day,
            requests.zoo,
            requests.service_level,
            requests.alpha,
            requests.key_hash,
            requests.team_id,
            requests.is_exploration,
            requests.chosen,
            served.candidate AS served,
            served.status,
            verdict.value AS satisfaction,
            served.cost AS served_cost,
            COALESCE(explored.cost, 0) AS exploration_cost,
            COALESCE(served.cost, 0) + COALESCE(explored.cost, 0) AS cost,
            CASE
                WHEN served.candidate = requests.largest THEN served.cost
                WHEN explored.cost_largest IS NOT NULL THEN explored.cost_largest
                ELSE requests.estimated_cost_largest
            END AS cost_largest
        FROM requests
        LEFT JOIN calls AS served
            ON served.request_id = requests.request_id AND served.role = 'served'
        LEFT JOIN current_labels AS verdict
            ON verdict.call_id = requests.request_id || '.0' AND verdict.source = 'feedback'
        LEFT JOIN (
            SELECT
                calls.request_id,
                SUM(calls.cost) AS cost,
                MAX(CASE WHEN calls.candidate = asked.largest THEN calls.cost END) AS cost_largest
            FROM calls
            JOIN requests AS asked ON asked.request_id = calls.request_id
            WHERE calls.role = 'exploration'
            GROUP BY calls.request_id
        ) AS explored
            ON explored.request_id = requests.request_id
    """,
    "daily_service_levels": """
        SELECT
            day,
            zoo,
            service_level,
            MAX(alpha) AS alpha,
            COUNT(*) AS requests,
            COUNT(satisfaction) AS answered,
            AVG(satisfaction) AS satisfaction,
            SUM(cost) AS cost,
            SUM(cost) / COUNT(*) AS cost_per_request
        FROM request_outcomes
        GROUP BY day, zoo, service_level
    """,
    "calls_per_model": """
        SELECT
            requests.zoo,
            calls.candidate,
            calls.model,
            calls.role,
            COUNT(*) AS calls,
            SUM(CASE WHEN calls.status = 'failure' THEN 1 ELSE 0 END) AS failures,
            SUM(calls.cost) AS cost,
            SUM(CASE WHEN calls.cost IS NULL THEN 1 ELSE 0 END) AS calls_without_cost,
            SUM(calls.prompt_tokens) AS prompt_tokens,
            SUM(calls.completion_tokens) AS completion_tokens
        FROM calls
        JOIN requests ON requests.request_id = calls.request_id
        GROUP BY requests.zoo, calls.candidate, calls.model, calls.role
    """,
    "savings": """
        SELECT
            zoo,
            service_level,
            COUNT(*) AS requests,
            SUM(cost) AS cost,
            SUM(cost_largest) AS cost_largest,
            SUM(cost_largest) - SUM(cost) AS saved,
            1 - SUM(cost) / NULLIF(SUM(cost_largest), 0) AS saved_share
        FROM request_outcomes
        WHERE status = 'success' AND served_cost IS NOT NULL AND cost_largest IS NOT NULL
        GROUP BY zoo, service_level
    """,
    "exploration_share": """
        SELECT
            zoo,
            service_level,
            COUNT(*) AS requests,
            SUM(CASE WHEN is_exploration THEN 1 ELSE 0 END) AS explorations,
            1.0 * SUM(CASE WHEN is_exploration THEN 1 ELSE 0 END) / COUNT(*) AS share,
            SUM(exploration_cost) AS exploration_cost,
            SUM(exploration_cost) / NULLIF(SUM(cost), 0) AS cost_share
        FROM request_outcomes
        GROUP BY zoo, service_level
    """,
    "open_requests": """
        SELECT request_id, created_at, zoo, service_level, key_hash, served
        FROM request_outcomes
        WHERE satisfaction IS NULL AND (status IS NULL OR status = 'success')
    """,
}


def upgrade() -> None:
    op.create_table(
        "calls",
        sa.Column(
            "call_id",
            sa.String(length=80),
            nullable=False,
            comment="The request's id, a dot, a number.",
        ),
        sa.Column("position", POSITION, nullable=False, comment="Place in the log."),
        sa.Column(
            "request_id",
            sa.String(length=64),
            nullable=False,
            comment="The request it was made for.",
        ),
        sa.Column(
            "ended_at", sa.DateTime(timezone=True), nullable=False, comment="When it ended, UTC."
        ),
        sa.Column(
            "role",
            sa.String(length=16),
            nullable=False,
            comment="`served` (the user saw it) or `exploration`.",
        ),
        sa.Column(
            "status", sa.String(length=16), nullable=False, comment="`success` or `failure`."
        ),
        sa.Column(
            "candidate",
            sa.String(length=255),
            nullable=True,
            comment="The candidate; NULL where a fallback outside served.",
        ),
        sa.Column(
            "deployment_id",
            sa.String(length=255),
            nullable=True,
            comment="LiteLLM's id of the deployment.",
        ),
        sa.Column(
            "model", sa.String(length=255), nullable=True, comment="The model as LiteLLM names it."
        ),
        sa.Column(
            "response_id", sa.String(length=255), nullable=True, comment="The `id` in the answer."
        ),
        sa.Column(
            "prompt_tokens",
            sa.Integer(),
            nullable=True,
            comment="Tokens read; NULL where the endpoint reported none.",
        ),
        sa.Column(
            "completion_tokens",
            sa.Integer(),
            nullable=True,
            comment="Tokens written; NULL where none were reported.",
        ),
        sa.Column(
            "cost",
            sa.Float(),
            nullable=True,
            comment="In the zoo's unit; NULL where unknown, which is not zero.",
        ),
        sa.Column(
            "cost_source",
            sa.String(length=16),
            nullable=False,
            comment="`measured`, `estimated` or `unknown`.",
        ),
        sa.Column(
            "seconds", sa.Float(), nullable=True, comment="From the start of the call to its end."
        ),
        sa.Column(
            "is_cache_hit",
            sa.Boolean(),
            nullable=False,
            comment="Whether LiteLLM's cache answered.",
        ),
        sa.Column("error", sa.Text(), nullable=True, comment="What went wrong."),
        sa.Column(
            "answer",
            sa.Text(),
            nullable=True,
            comment="The answer's text, where `store_text` is on.",
        ),
        sa.PrimaryKeyConstraint("call_id"),
        sa.UniqueConstraint("position"),
        comment="One row a model that was invoked: the served call, and exploration calls.",
    )
    op.create_index("ix_calls_request_id", "calls", ["request_id"])
    op.create_index("ix_calls_response_id", "calls", ["response_id"])
    op.create_table(
        "labels",
        sa.Column(
            "label_id", sa.String(length=64), nullable=False, comment="Our own id of the verdict."
        ),
        sa.Column("position", POSITION, nullable=False, comment="Place in the log."),
        sa.Column(
            "call_id", sa.String(length=80), nullable=False, comment="The call that it judges."
        ),
        sa.Column(
            "request_id", sa.String(length=64), nullable=False, comment="The request of that call."
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When it was given, UTC.",
        ),
        sa.Column(
            "source", sa.String(length=64), nullable=False, comment="Who judged: `feedback`."
        ),
        sa.Column("value", sa.Float(), nullable=False, comment="Satisfaction from 0 to 1."),
        sa.Column("weight", sa.Float(), nullable=False, comment="How much it counts."),
        sa.Column("comment", sa.Text(), nullable=True, comment="The user's words."),
        sa.PrimaryKeyConstraint("label_id"),
        sa.UniqueConstraint("position"),
        comment="Every verdict ever given; the newest of a call and source is the one that counts.",
    )
    op.create_index("ix_labels_call_id", "labels", ["call_id"])
    op.create_index("ix_labels_request_id", "labels", ["request_id"])
    op.create_table(
        "log_head",
        sa.Column("id", sa.Integer(), nullable=False, comment="Always 1: the table has one row."),
        sa.Column(
            "position",
            POSITION,
            nullable=False,
            comment="Position of the newest record in the log.",
        ),
        sa.PrimaryKeyConstraint("id"),
        comment="Hands out log positions: a writer holds this row until it commits, so that "
        "records become visible in the order of their positions.",
    )
    op.create_table(
        "requests",
        sa.Column(
            "request_id", sa.String(length=64), nullable=False, comment="Our own id of the request."
        ),
        sa.Column("position", POSITION, nullable=False, comment="Place in the log."),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When it was decided, UTC.",
        ),
        sa.Column(
            "zoo",
            sa.String(length=255),
            nullable=False,
            comment="The `model_name` that was asked for.",
        ),
        sa.Column(
            "service_level",
            sa.String(length=255),
            nullable=False,
            comment="The promise that it counts towards.",
        ),
        sa.Column(
            "t",
            sa.BigInteger(),
            nullable=False,
            comment="Its number within the service level, from 1.",
        ),
        sa.Column("alpha", sa.Float(), nullable=False, comment="The share promised at that time."),
        sa.Column(
            "policy", sa.String(length=64), nullable=False, comment="The policy that decided."
        ),
        sa.Column(
            "litellm_call_id",
            sa.String(length=255),
            nullable=False,
            comment="LiteLLM's id (`x-litellm-call-id`). A client may set it, so it may repeat.",
        ),
        sa.Column(
            "key_hash", sa.String(length=255), nullable=True, comment="Hash of the key that asked."
        ),
        sa.Column("team_id", sa.String(length=255), nullable=True, comment="The key's team."),
        sa.Column(
            "call_type",
            sa.String(length=64),
            nullable=False,
            comment="LiteLLM's call type, such as `acompletion`.",
        ),
        sa.Column(
            "is_stream", sa.Boolean(), nullable=False, comment="Whether the answer was streamed."
        ),
        sa.Column(
            "encoder",
            sa.String(length=255),
            nullable=False,
            comment="The encoder that made the features.",
        ),
        sa.Column(
            "features",
            sa.LargeBinary(),
            nullable=False,
            comment="Features of the prompt: little-endian float32.",
        ),
        sa.Column(
            "prompt_characters",
            sa.Integer(),
            nullable=False,
            comment="Length of the prompt's text.",
        ),
        sa.Column(
            "estimated_cost",
            sa.JSON(),
            nullable=False,
            comment="Expected cost per healthy candidate, in the zoo's unit.",
        ),
        sa.Column(
            "estimated_satisfaction",
            sa.JSON(),
            nullable=False,
            comment="Predicted probability of satisfaction per healthy candidate.",
        ),
        sa.Column(
            "estimated_cost_largest",
            sa.Float(),
            nullable=True,
            comment="Expected cost of the largest candidate, for savings.",
        ),
        sa.Column(
            "queue", sa.Float(), nullable=False, comment="The virtual queue at the decision."
        ),
        sa.Column(
            "chosen",
            sa.String(length=255),
            nullable=False,
            comment="The candidate that was to serve.",
        ),
        sa.Column(
            "largest",
            sa.String(length=255),
            nullable=False,
            comment="The zoo's largest candidate at that time.",
        ),
        sa.Column(
            "is_exploration",
            sa.Boolean(),
            nullable=False,
            comment="Whether other candidates were called beside it.",
        ),
        sa.Column(
            "exploration_probability",
            sa.Float(),
            nullable=False,
            comment="p_t: how likely the exploration was.",
        ),
        sa.Column("reason", sa.Text(), nullable=False, comment="Why this candidate, in words."),
        sa.Column(
            "decision_seconds", sa.Float(), nullable=False, comment="How long the decision took."
        ),
        sa.Column(
            "prompt",
            sa.Text(),
            nullable=True,
            comment="The prompt's text, where `store_text` is on.",
        ),
        sa.PrimaryKeyConstraint("request_id"),
        sa.UniqueConstraint("position"),
        comment="One row a user's request: what was decided, from which estimates, and why.",
    )
    op.create_index("ix_requests_created_at", "requests", ["created_at"])
    op.create_index("ix_requests_litellm_call_id", "requests", ["litellm_call_id"])
    op.create_table(
        "snapshots",
        sa.Column(
            "zoo", sa.String(length=255), nullable=False, comment="The zoo whose state it is."
        ),
        sa.Column("position", POSITION, nullable=False, comment="The log is folded up to here."),
        sa.Column(
            "fingerprint",
            sa.String(length=64),
            nullable=False,
            comment="Of the settings that the fold depends on.",
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When it was taken, UTC.",
        ),
        sa.Column(
            "state",
            sa.LargeBinary(),
            nullable=False,
            comment="Predictor, queues and running means.",
        ),
        sa.PrimaryKeyConstraint("zoo", "position"),
        comment="A cache of the fold of the log: a start goes on from the newest one that fits.",
    )
    op.execute("INSERT INTO log_head (id, position) VALUES (1, 0)")
    # Postgres would take the day in the time zone of whoever asks.
    day = {"postgresql": "date(requests.created_at AT TIME ZONE 'UTC')"}.get(
        op.get_bind().dialect.name, "date(requests.created_at)"
    )
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query.replace('{day}', day)}")


def downgrade() -> None:
    for name in reversed(VIEWS):
        op.execute(f"DROP VIEW {name}")
    for table in ("calls", "labels", "log_head", "requests", "snapshots"):
        op.drop_table(table)
