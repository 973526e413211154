"""Sums by hour, for the page's charts, and who is signed in to it.

As the sums by day, those by hour are kept in the transaction that writes the log, and each table
has a view beside it, `logged_` and its name, that adds the same up from the log.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

LOGGED_HOURLY_REQUEST_SUMS = """
    SELECT
        outcomes.day,
        outcomes.zoo,
        outcomes.service_level,
        {hour} AS hour,
        outcomes.alpha,
        COUNT(*) AS requests,
        COUNT(outcomes.satisfaction) AS answered,
        COALESCE(SUM(outcomes.satisfaction_weight), 0) AS weight,
        COALESCE(SUM(outcomes.satisfaction_weight * outcomes.satisfaction_weight), 0)
            AS weight_squared,
        COALESCE(SUM(outcomes.satisfaction_weight * outcomes.satisfaction), 0)
            AS weighted_satisfaction,
        SUM(outcomes.cost) AS cost,
        SUM(CASE WHEN {compared} THEN 1 ELSE 0 END) AS compared,
        COALESCE(SUM(CASE WHEN {compared} THEN outcomes.cost END), 0) AS compared_cost,
        COALESCE(SUM(CASE WHEN {compared} THEN outcomes.cost_largest END), 0)
            AS compared_cost_largest,
        SUM(requests.queue) AS queue
    FROM request_outcomes AS outcomes
    JOIN requests ON requests.request_id = outcomes.request_id
    GROUP BY outcomes.day, outcomes.zoo, outcomes.service_level, {hour}, outcomes.alpha
""".replace(
    "{compared}",
    "outcomes.status = 'success' AND outcomes.served_cost IS NOT NULL"
    " AND outcomes.cost_largest IS NOT NULL",
)

LOGGED_HOURLY_CALL_SUMS = """
    SELECT
        {day} AS day,
        requests.zoo,
        requests.service_level,
        {hour} AS hour,
        COALESCE(calls.candidate, '') AS candidate,
        calls.role,
        COUNT(*) AS calls,
        SUM(CASE WHEN calls.status = 'failure' THEN 1 ELSE 0 END) AS failures
    FROM calls
    JOIN requests ON requests.request_id = calls.request_id
    GROUP BY {day}, requests.zoo, requests.service_level, {hour},
        COALESCE(calls.candidate, ''), calls.role
"""

LOGGED = {
    "hourly_request_sums": LOGGED_HOURLY_REQUEST_SUMS,
    "hourly_call_sums": LOGGED_HOURLY_CALL_SUMS,
}


def upgrade() -> None:
    for name, make in (
        ("hourly_request_sums", _create_request_sums),
        ("hourly_call_sums", _create_call_sums),
    ):
        columns = ", ".join(column.name for column in make().columns)
        op.execute(f"CREATE VIEW logged_{name} AS {_of_dialect(LOGGED[name])}")
        op.execute(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM logged_{name}")
    _create_sign_ins()


def downgrade() -> None:
    op.drop_table("page_sign_ins")
    for name in LOGGED:
        op.execute(f"DROP VIEW logged_{name}")
        op.drop_table(name)


def _of_dialect(query: str) -> str:
    """Write a query for the database: Postgres would take day and hour in the time zone of whoever
    asks."""
    at = "requests.created_at"
    if op.get_context().dialect.name == "postgresql":
        at = f"{at} AT TIME ZONE 'UTC'"
        hour = f"CAST(EXTRACT(HOUR FROM {at}) AS INTEGER)"
    else:
        hour = f"CAST(strftime('%H', {at}) AS INTEGER)"
    return query.replace("{day}", f"date({at})").replace("{hour}", hour)


def _create_request_sums() -> sa.Table:
    return op.create_table(
        "hourly_request_sums",
        _required("day", sa.Date(), "The date of its requests, UTC."),
        _required("zoo", sa.String(255), "The `model_name` that was asked for."),
        _required("service_level", sa.String(255), "The promise."),
        _required("hour", sa.Integer(), "The hour of that day, UTC, from 0."),
        _required("alpha", sa.Float(), "The share promised at that time."),
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
        sa.PrimaryKeyConstraint("day", "zoo", "service_level", "hour", "alpha"),
        comment="Requests added up by hour and promise, written together with the log, for the "
        "page's charts.",
    )


def _create_call_sums() -> sa.Table:
    return op.create_table(
        "hourly_call_sums",
        _required("day", sa.Date(), "The date of the request, UTC."),
        _required("zoo", sa.String(255), "The `model_name` that was asked for."),
        _required("service_level", sa.String(255), "The promise."),
        _required("hour", sa.Integer(), "The hour of that day, UTC, from 0."),
        _required("candidate", sa.String(255), "The candidate; empty for NULL."),
        _required("role", sa.String(16), "`served` or `exploration`."),
        _required("calls", sa.Integer(), "Calls ended."),
        _required("failures", sa.Integer(), "Those of them that failed."),
        sa.PrimaryKeyConstraint("day", "zoo", "service_level", "hour", "candidate", "role"),
        comment="Calls added up by hour, promise and model, written together with the log, for the "
        "page's charts.",
    )


def _create_sign_ins() -> None:
    op.create_table(
        "page_sign_ins",
        _required("token_hash", sa.String(64), "SHA-256 of what the browser holds."),
        _required("kind", sa.String(16), "`code` (opens one session) or `session`."),
        _required("expires_at", sa.DateTime(timezone=True), "Until when it is taken, UTC."),
        sa.PrimaryKeyConstraint("token_hash"),
        comment="Who may see the page: one-time codes and the sessions that they opened.",
    )


def _required(name: str, kind: Any, comment: str) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, comment=comment)
