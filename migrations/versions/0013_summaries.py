"""Sums by day, kept in the transaction that writes the log: the status reads them, not the log.

Each table of sums has a view beside it, `logged_` and its name, that adds the same up from the log:
it fills the table here, and is what `messplus verify` holds it to. The views that people ask for
whole-time figures read the sums from here on, with the columns that they had.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import op
from alembic.script import ScriptDirectory

revision = "0013"
down_revision = "0012"

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

LOGGED_REQUEST_SUMS = """
    SELECT
        outcomes.day,
        outcomes.zoo,
        outcomes.service_level,
        outcomes.alpha,
        COUNT(*) AS requests,
        SUM(CASE WHEN EXISTS (
            SELECT 1 FROM labels WHERE labels.call_id = outcomes.request_id || '.0'
        ) THEN 1 ELSE 0 END) AS labelled,
        COUNT(outcomes.satisfaction) AS answered,
        COALESCE(SUM(outcomes.satisfaction_weight), 0) AS weight,
        COALESCE(SUM(outcomes.satisfaction_weight * outcomes.satisfaction_weight), 0)
            AS weight_squared,
        COALESCE(SUM(outcomes.satisfaction_weight * outcomes.satisfaction), 0)
            AS weighted_satisfaction,
        SUM(outcomes.cost) AS cost,
        COUNT(outcomes.served_cost) AS priced,
        COALESCE(SUM(CASE WHEN outcomes.served_cost IS NOT NULL THEN outcomes.cost END), 0)
            AS priced_cost,
        SUM(CASE WHEN outcomes.is_exploration THEN 1 ELSE 0 END) AS explorations,
        SUM(outcomes.exploration_cost) AS exploration_cost,
        SUM(CASE WHEN {compared} THEN 1 ELSE 0 END) AS compared,
        COALESCE(SUM(CASE WHEN {compared} THEN outcomes.cost END), 0) AS compared_cost,
        COALESCE(SUM(CASE WHEN {compared} THEN outcomes.cost_largest END), 0)
            AS compared_cost_largest,
        COUNT(served.seconds) AS timed,
        SUM(CASE WHEN served.seconds IS NOT NULL AND requests.encode_seconds IS NULL
            THEN 1 ELSE 0 END) AS late,
        COALESCE(SUM(CASE WHEN served.seconds IS NOT NULL THEN requests.encode_seconds END), 0)
            AS predicting_seconds,
        COALESCE(SUM(CASE WHEN served.seconds IS NOT NULL
            THEN requests.decision_seconds - COALESCE(requests.encode_seconds, 0) END), 0)
            AS deciding_seconds,
        COALESCE(SUM(served.seconds), 0) AS call_seconds,
        COUNT(CASE WHEN served.seconds IS NOT NULL THEN requests.encode_joules END) AS metered,
        COALESCE(SUM(CASE WHEN served.seconds IS NOT NULL THEN requests.encode_joules END), 0)
            AS joules
    FROM request_outcomes AS outcomes
    JOIN requests ON requests.request_id = outcomes.request_id
    LEFT JOIN calls AS served
        ON served.request_id = outcomes.request_id AND served.role = 'served'
    GROUP BY outcomes.day, outcomes.zoo, outcomes.service_level, outcomes.alpha
""".replace(
    "{compared}",
    "outcomes.status = 'success' AND outcomes.served_cost IS NOT NULL"
    " AND outcomes.cost_largest IS NOT NULL",
)

OWN = "calls.status = 'success' AND calls.candidate IS NOT NULL AND NOT calls.is_cache_hit"
"""A model's own answer, not one that LiteLLM's cache repeated."""

LOGGED_CALL_SUMS = """
    SELECT
        {day} AS day,
        requests.zoo,
        requests.service_level,
        COALESCE(calls.candidate, '') AS candidate,
        COALESCE(calls.model, '') AS model,
        calls.role,
        COUNT(*) AS calls,
        SUM(CASE WHEN calls.status = 'failure' THEN 1 ELSE 0 END) AS failures,
        SUM(COALESCE(energy.cost, calls.cost)) AS cost,
        SUM(CASE WHEN COALESCE(energy.cost, calls.cost) IS NULL THEN 1 ELSE 0 END)
            AS calls_without_cost,
        SUM(calls.prompt_tokens) AS prompt_tokens,
        SUM(calls.completion_tokens) AS completion_tokens,
        SUM(CASE WHEN calls.status = 'success' AND calls.cost IS NULL THEN 1 ELSE 0 END)
            AS unstated,
        SUM(CASE WHEN {own} THEN 1 ELSE 0 END) AS own,
        COUNT(CASE WHEN {own} THEN COALESCE(energy.cost, calls.cost) END) AS priced,
        COALESCE(SUM(CASE WHEN {own} THEN COALESCE(energy.cost, calls.cost) END), 0)
            AS priced_cost,
        COUNT(CASE WHEN {own} THEN verdict.value END) AS judged,
        COALESCE(SUM(CASE WHEN {own} THEN verdict.weight END), 0) AS weight,
        COALESCE(SUM(CASE WHEN {own} THEN verdict.weight * verdict.weight END), 0)
            AS weight_squared,
        COALESCE(SUM(CASE WHEN {own} THEN verdict.weight * verdict.value END), 0)
            AS weighted_satisfaction
    FROM calls
    JOIN requests ON requests.request_id = calls.request_id
    LEFT JOIN call_energy AS energy ON energy.call_id = calls.call_id
    LEFT JOIN labels AS verdict
        ON verdict.call_id = calls.call_id
        AND {counts}
    GROUP BY {day}, requests.zoo, requests.service_level, COALESCE(calls.candidate, ''),
        COALESCE(calls.model, ''), calls.role
"""

LOGGED_LABEL_SUMS = """
    SELECT
        day,
        zoo,
        service_level,
        kind,
        source,
        SUM(CASE WHEN is_newest THEN 1 ELSE 0 END) AS labelled,
        COALESCE(SUM(CASE WHEN is_newest THEN value END), 0) AS satisfaction,
        COALESCE(SUM(CASE WHEN is_newest THEN value * value END), 0) AS satisfaction_squared,
        SUM(CASE WHEN counts THEN 1 ELSE 0 END) AS counting
    FROM (
        SELECT
            {day} AS day,
            requests.zoo,
            requests.service_level,
            labels.kind,
            labels.source,
            labels.value,
            NOT EXISTS (
                SELECT 1
                FROM labels AS newer
                WHERE newer.call_id = labels.call_id
                    AND newer.source = labels.source
                    AND newer.position > labels.position
            ) AS is_newest,
            {counts} AS counts
        FROM labels
        JOIN requests ON requests.request_id = labels.request_id
        WHERE labels.call_id = labels.request_id || '.0'
    ) AS said
    WHERE is_newest OR counts
    GROUP BY day, zoo, service_level, kind, source
"""

LOGGED_GRADING_SUMS = """
    SELECT
        {day} AS day,
        requests.zoo,
        gradings.judge,
        COUNT(*) AS gradings,
        SUM(CASE WHEN gradings.status = 'graded' THEN 1 ELSE 0 END) AS graded,
        SUM(gradings.answers) AS answers,
        SUM(gradings.cost) AS cost,
        SUM(CASE WHEN gradings.cost IS NULL THEN 1 ELSE 0 END) AS gradings_without_cost,
        MAX(CASE WHEN gradings.status = 'graded' THEN gradings.position END) AS newest_graded
    FROM gradings
    JOIN requests ON requests.request_id = gradings.request_id
    GROUP BY {day}, requests.zoo, gradings.judge
"""

OF_SUMS = {
    "daily_service_levels": """
        SELECT
            day,
            zoo,
            service_level,
            MAX(alpha) AS alpha,
            SUM(requests) AS requests,
            SUM(answered) AS answered,
            SUM(weighted_satisfaction) / NULLIF(SUM(weight), 0) AS satisfaction,
            SUM(cost) AS cost,
            SUM(cost) / SUM(requests) AS cost_per_request
        FROM request_sums
        GROUP BY day, zoo, service_level
    """,
    "calls_per_model": """
        SELECT
            zoo,
            NULLIF(candidate, '') AS candidate,
            NULLIF(model, '') AS model,
            role,
            SUM(calls) AS calls,
            SUM(failures) AS failures,
            SUM(cost) AS cost,
            SUM(calls_without_cost) AS calls_without_cost,
            CAST(SUM(prompt_tokens) AS BIGINT) AS prompt_tokens,
            CAST(SUM(completion_tokens) AS BIGINT) AS completion_tokens
        FROM call_sums
        GROUP BY zoo, NULLIF(candidate, ''), NULLIF(model, ''), role
    """,
    "savings": """
        SELECT
            zoo,
            service_level,
            SUM(compared) AS requests,
            SUM(compared_cost) AS cost,
            SUM(compared_cost_largest) AS cost_largest,
            SUM(compared_cost_largest) - SUM(compared_cost) AS saved,
            1 - SUM(compared_cost) / NULLIF(SUM(compared_cost_largest), 0) AS saved_share
        FROM request_sums
        GROUP BY zoo, service_level
        HAVING SUM(compared) > 0
    """,
    "exploration_share": """
        SELECT
            zoo,
            service_level,
            SUM(requests) AS requests,
            SUM(explorations) AS explorations,
            1.0 * SUM(explorations) / SUM(requests) AS share,
            SUM(exploration_cost) AS exploration_cost,
            SUM(exploration_cost) / NULLIF(SUM(cost), 0) AS cost_share
        FROM request_sums
        GROUP BY zoo, service_level
    """,
    "gradings_per_day": """
        SELECT day, zoo, judge, gradings, graded, answers, cost, gradings_without_cost
        FROM grading_sums
    """,
}
"""The views that add up over the whole time, which now read the sums."""


def upgrade() -> None:
    for name, columns, comment in _tables():
        op.create_table(name, *columns, comment=comment)
    op.create_index("ix_requests_level_position", "requests", ["zoo", "service_level", "position"])
    for name, query in _logged().items():
        _create_view(name, query)
        table = name.removeprefix("logged_")
        columns_of = ", ".join(column.name for column in _columns_of(table))
        op.execute(f"INSERT INTO {table} ({columns_of}) SELECT {columns_of} FROM {name}")
    for name in reversed(OF_SUMS):
        op.execute(f"DROP VIEW {name}")
    for name, query in OF_SUMS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")


def downgrade() -> None:
    for name in reversed([*OF_SUMS, *_logged()]):
        op.execute(f"DROP VIEW {name}")
    labels = _module("0004")
    before = {**_module("0012")._views(), "gradings_per_day": labels.GRADINGS_PER_DAY}
    labels._create_views({name: before[name] for name in OF_SUMS})
    op.drop_index("ix_requests_level_position", "requests")
    for name, _, _ in _tables():
        op.drop_table(name)


def _logged() -> dict[str, str]:
    """Return the query of each table of sums, added up from the log."""
    return {
        "logged_request_sums": LOGGED_REQUEST_SUMS,
        "logged_call_sums": LOGGED_CALL_SUMS.replace("{own}", OWN).replace(
            "{counts}", _counts("verdict")
        ),
        "logged_label_sums": LOGGED_LABEL_SUMS.replace("{counts}", _counts("labels")),
        "logged_grading_sums": LOGGED_GRADING_SUMS,
    }


def _create_view(name: str, query: str) -> None:
    """Create a view: Postgres would take the day in the time zone of whoever asks."""
    table = "gradings" if "grading" in name else "requests"
    at = f"{table}.created_at"
    is_postgres = op.get_context().dialect.name == "postgresql"
    day = f"date({at} AT TIME ZONE 'UTC')" if is_postgres else f"date({at})"
    op.execute(f"CREATE VIEW {name} AS {query.replace('{day}', day)}")


def _counts(label: str) -> str:
    """Tell whether a label beside a row of `requests` is the one of its call that counts."""
    rank: str = _module("0004").RANK
    ranks = {"rank": rank.format(label=label), "other_rank": rank.format(label="other")}
    counts: str = _module("0012").COUNTS.format(label=label, **ranks)
    return counts


def _module(revision: str) -> Any:
    """Load an earlier migration, which made the views."""
    return ScriptDirectory(str(Path(__file__).parents[1])).get_revision(revision).module


def _columns_of(table: str) -> list[sa.Column[Any]]:
    return next(
        [column for column in columns if isinstance(column, sa.Column)]
        for name, columns, _ in _tables()
        if name == table
    )


def _tables() -> Iterator[tuple[str, list[Any], str]]:
    """List name, columns with the primary key, and comment of each."""
    yield (
        "request_sums",
        [
            _required("day", sa.Date(), "The date of its requests, UTC."),
            _required("zoo", sa.String(length=255), "The `model_name` that was asked for."),
            _required("service_level", sa.String(length=255), "The promise."),
            _required("alpha", sa.Float(), "The share promised at that time."),
            _required("requests", sa.Integer(), "Requests decided."),
            _required(
                "labelled",
                sa.Integer(),
                "Those with a label of any source, whether it counts or not.",
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
                "compared_cost_largest",
                sa.Float(),
                "What they would have cost at the largest alone.",
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
            sa.PrimaryKeyConstraint("day", "zoo", "service_level", "alpha"),
        ],
        (
            "Requests added up by day and promise, written together with the log: the "
            "status is read from here."
        ),
    )
    yield (
        "call_sums",
        [
            _required("day", sa.Date(), "The date of the request, UTC."),
            _required("zoo", sa.String(length=255), "The `model_name` that was asked for."),
            _required("service_level", sa.String(length=255), "The promise."),
            _required("candidate", sa.String(length=255), "The candidate; empty for NULL."),
            _required("model", sa.String(length=255), "LiteLLM's name; empty for NULL."),
            _required("role", sa.String(length=16), "`served` or `exploration`."),
            _required("calls", sa.Integer(), "Calls ended."),
            _required("failures", sa.Integer(), "Those of them that failed."),
            _optional(
                "cost", sa.Float(), "What they cost, measured energy included; NULL where unknown."
            ),
            _required("calls_without_cost", sa.Integer(), "Calls whose cost is unknown."),
            _optional("prompt_tokens", sa.BigInteger(), "Tokens read; NULL where nobody knows."),
            _optional(
                "completion_tokens", sa.BigInteger(), "Tokens written; NULL where nobody knows."
            ),
            _required(
                "unstated", sa.Integer(), "Successful calls whose cost nobody stated at their end."
            ),
            _required(
                "own",
                sa.Integer(),
                "A model's own answers: successful, and not repeated by a cache.",
            ),
            _required("priced", sa.Integer(), "Own answers of known cost."),
            _required("priced_cost", sa.Float(), "What those cost."),
            _required("judged", sa.Integer(), "Own answers with a verdict."),
            _required("weight", sa.Float(), "Sum of these verdicts' weights."),
            _required("weight_squared", sa.Float(), "Sum of the squares of these weights."),
            _required("weighted_satisfaction", sa.Float(), "Sum of weight times satisfaction."),
            sa.PrimaryKeyConstraint("day", "zoo", "service_level", "candidate", "model", "role"),
        ],
        "Calls added up by day, promise and model, written together with the log.",
    )
    yield (
        "label_sums",
        [
            _required("day", sa.Date(), "The date of the request, UTC."),
            _required("zoo", sa.String(length=255), "The `model_name` that was asked for."),
            _required("service_level", sa.String(length=255), "The promise."),
            _required("kind", sa.String(length=16), "A kind of labels."),
            _required("source", sa.String(length=64), "Who judged."),
            _required("labelled", sa.Integer(), "Served calls that it labelled."),
            _required("satisfaction", sa.Float(), "Sum of its newest labels' values on them."),
            _required("satisfaction_squared", sa.Float(), "Sum of the squares of these values."),
            _required(
                "counting", sa.Integer(), "How many of its labels are the verdict of their request."
            ),
            sa.PrimaryKeyConstraint("day", "zoo", "service_level", "kind", "source"),
        ],
        (
            "What each source of labels said of the served calls, added up by day and "
            "promise, written together with the log."
        ),
    )
    yield (
        "grading_sums",
        [
            _required("day", sa.Date(), "The date of the gradings, UTC."),
            _required("zoo", sa.String(length=255), "The zoo whose answers were graded."),
            _required("judge", sa.String(length=255), "The model group that graded."),
            _required("gradings", sa.Integer(), "Times that it was asked."),
            _required("graded", sa.Integer(), "Those of them that it answered as it should."),
            _required("answers", sa.Integer(), "Answers that it was shown."),
            _optional("cost", sa.Float(), "In dollars, as far as it is known; NULL where none is."),
            _required("gradings_without_cost", sa.Integer(), "Gradings whose cost is unknown."),
            _optional(
                "newest_graded", POSITION, "Place in the log of the newest answered as it should."
            ),
            sa.PrimaryKeyConstraint("day", "zoo", "judge"),
        ],
        "Gradings added up by day and judge, written together with the log.",
    )


def _required(name: str, kind: Any, comment: str) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, comment=comment)


def _optional(name: str, kind: Any, comment: str) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=True, comment=comment)
