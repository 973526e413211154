"""Labels of several kinds, the rule that makes one verdict of them, and what judging costs.

`verdicts` shows the label of each call that counts. From here on a request's satisfaction is that
of its verdict, whoever gave it, and rates weigh each verdict.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import sqlalchemy as sa
from alembic import op
from alembic.script import ScriptDirectory

revision = "0004"
down_revision = "0003"

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

RANK = """COALESCE(
            (
                SELECT COALESCE(rule.rank, 0)
                FROM label_precedence AS rule
                WHERE rule.zoo = requests.zoo AND rule.kind = {label}.kind
            ),
            CASE {label}.kind
                WHEN 'feedback' THEN 1 WHEN 'check' THEN 2 WHEN 'judge' THEN 3 ELSE 4
            END
        )"""
"""Of a label beside a row of `requests`: 1 is the strongest, 0 does not count."""

COUNTS = """{label}.weight > 0
        AND {rank} > 0
        AND NOT EXISTS (
            SELECT 1
            FROM labels AS other
            WHERE other.call_id = {label}.call_id
                AND other.position <> {label}.position
                AND other.weight > 0
                AND CASE
                    WHEN other.source = {label}.source THEN other.position > {label}.position
                    ELSE {other_rank} > 0
                        AND ({other_rank}, other.value, other.position)
                            < ({rank}, {label}.value, {label}.position)
                        AND NOT EXISTS (
                            SELECT 1
                            FROM labels AS newer
                            WHERE newer.call_id = other.call_id
                                AND newer.source = other.source
                                AND newer.weight > 0
                                AND newer.position > other.position
                        )
                END
        )"""
"""Whether a label beside a row of `requests` is the one of its call that counts: no newer one of
its source, and no stronger one of another. It is looked up by an index, however long the log."""

VERDICTS = """
    SELECT
        labels.label_id,
        labels.call_id,
        labels.request_id,
        labels.created_at,
        labels.kind,
        labels.source,
        labels.value,
        labels.weight,
        labels.comment,
        labels.position
    FROM labels
    JOIN requests ON requests.request_id = labels.request_id
    WHERE {counts}
"""

EXPLORED = """CASE WHEN requests.is_exploration THEN (
            SELECT {figure}
            FROM calls AS explored
            WHERE explored.request_id = requests.request_id AND explored.role = 'exploration'
        ) END"""
"""A figure over the exploration calls of one request, looked up by an index too."""

REQUEST_OUTCOMES = """
    SELECT
        requests.request_id,
        requests.created_at,
        {{day}} AS day,
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
        verdict.weight AS satisfaction_weight,
        verdict.kind AS satisfaction_kind,
        served.cost AS served_cost,
        COALESCE({exploration_cost}, 0) AS exploration_cost,
        COALESCE(served.cost, 0) + COALESCE({exploration_cost}, 0) AS cost,
        CASE
            WHEN served.candidate = requests.largest THEN served.cost
            ELSE COALESCE({explored_cost_largest}, requests.estimated_cost_largest)
        END AS cost_largest
    FROM requests
    LEFT JOIN calls AS served
        ON served.request_id = requests.request_id AND served.role = 'served'
    LEFT JOIN labels AS verdict
        ON verdict.call_id = requests.request_id || '.0'
        AND {counts}
"""

DAILY_SERVICE_LEVELS = """
    SELECT
        day,
        zoo,
        service_level,
        MAX(alpha) AS alpha,
        COUNT(*) AS requests,
        COUNT(satisfaction) AS answered,
        SUM(satisfaction * satisfaction_weight) / SUM(satisfaction_weight) AS satisfaction,
        SUM(cost) AS cost,
        SUM(cost) / COUNT(*) AS cost_per_request
    FROM request_outcomes
    GROUP BY day, zoo, service_level
"""

GRADINGS_PER_DAY = """
    SELECT
        {day} AS day,
        requests.zoo,
        gradings.judge,
        COUNT(*) AS gradings,
        SUM(CASE WHEN gradings.status = 'graded' THEN 1 ELSE 0 END) AS graded,
        SUM(gradings.answers) AS answers,
        SUM(gradings.cost) AS cost,
        SUM(CASE WHEN gradings.cost IS NULL THEN 1 ELSE 0 END) AS gradings_without_cost
    FROM gradings
    JOIN requests ON requests.request_id = gradings.request_id
    GROUP BY {day}, requests.zoo, gradings.judge
"""


def upgrade() -> None:
    op.add_column(
        "labels",
        sa.Column(
            "kind",
            sa.String(length=16),
            nullable=False,
            server_default="feedback",
            comment="`feedback`, `check`, `judge` or `implicit`.",
        ),
    )
    _comment_on_labels()
    _create_label_precedence()
    _create_gradings()
    before = _first_views()
    _drop_views(before)
    _create_views(
        {
            "current_labels": before["current_labels"].replace("source,", "kind, source,"),
            "verdicts": VERDICTS.format(counts=_counts("labels")),
            **{name: query for name, query in before.items() if name != "current_labels"},
            "request_outcomes": _request_outcomes(),
            "daily_service_levels": DAILY_SERVICE_LEVELS,
            "gradings_per_day": GRADINGS_PER_DAY,
        }
    )


def _counts(label: str) -> str:
    ranks = {"rank": RANK.format(label=label), "other_rank": RANK.format(label="other")}
    return COUNTS.format(label=label, **ranks)


def _request_outcomes() -> str:
    of_largest = "MAX(CASE WHEN explored.candidate = requests.largest THEN explored.cost END)"
    return REQUEST_OUTCOMES.format(
        counts=_counts("verdict"),
        exploration_cost=EXPLORED.format(figure="SUM(explored.cost)"),
        explored_cost_largest=EXPLORED.format(figure=of_largest),
    )


def downgrade() -> None:
    before = _first_views()
    _drop_views(["current_labels", "verdicts", *list(before)[1:], "gradings_per_day"])
    op.drop_table("gradings")
    op.drop_table("label_precedence")
    op.drop_column("labels", "kind")
    _create_views(before)


def _comment_on_labels() -> None:
    """Write the comments; SQLite keeps none."""
    if op.get_context().dialect.name == "sqlite":
        return
    op.create_table_comment(
        "labels",
        "Every label ever given; which one of a call's counts, the view `verdicts` shows.",
    )
    comments = {
        "source": "Who judged: its kind, for a check a colon and its name.",
        "weight": "How much it counts; 0 is in the log alone.",
        "comment": "The user's words, or why it was judged so.",
    }
    for column, comment in comments.items():
        op.alter_column("labels", column, comment=comment)


def _create_label_precedence() -> None:
    op.create_table(
        "label_precedence",
        sa.Column("zoo", sa.String(length=255), nullable=False, comment="The zoo."),
        sa.Column("kind", sa.String(length=16), nullable=False, comment="A kind of labels."),
        sa.Column(
            "rank",
            sa.Integer(),
            nullable=True,
            comment="1 is the strongest; NULL does not count.",
        ),
        sa.PrimaryKeyConstraint("zoo", "kind"),
        comment="Whose word counts first, as configured when a proxy last started with the zoo.",
    )


def _create_gradings() -> None:
    op.create_table(
        "gradings",
        sa.Column(
            "grading_id",
            sa.String(length=64),
            nullable=False,
            comment="Our own id of the grading.",
        ),
        sa.Column("position", POSITION, nullable=False, comment="Place in the log."),
        sa.Column(
            "request_id",
            sa.String(length=64),
            nullable=False,
            comment="The request whose answers were graded.",
        ),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), nullable=False, comment="When it ended, UTC."
        ),
        sa.Column(
            "judge",
            sa.String(length=255),
            nullable=False,
            comment="The model group that graded.",
        ),
        sa.Column(
            "status",
            sa.String(length=16),
            nullable=False,
            comment="`graded`, `nonsense` or `failure`.",
        ),
        sa.Column("answers", sa.Integer(), nullable=False, comment="How many answers were shown."),
        sa.Column(
            "cost",
            sa.Float(),
            nullable=True,
            comment="In dollars, as LiteLLM priced it; NULL where unknown.",
        ),
        sa.Column(
            "prompt_tokens",
            sa.Integer(),
            nullable=True,
            comment="Tokens read; NULL where none were reported.",
        ),
        sa.Column(
            "completion_tokens",
            sa.Integer(),
            nullable=True,
            comment="Tokens written; NULL where none were reported.",
        ),
        sa.Column("seconds", sa.Float(), nullable=True, comment="How long the judge took."),
        sa.Column("error", sa.Text(), nullable=True, comment="What went wrong."),
        sa.PrimaryKeyConstraint("grading_id"),
        sa.UniqueConstraint("position"),
        comment="One row a time that a judge was asked; what it said is in `labels`. Its cost is "
        "no part of any request's.",
    )
    op.create_index("ix_gradings_request_id", "gradings", ["request_id"])
    op.create_index("ix_gradings_created_at", "gradings", ["created_at"])


def _first_views() -> dict[str, str]:
    """Return the views as the first migration made them, each after those that it reads."""
    first = ScriptDirectory(str(Path(__file__).parents[1])).get_revision("0001")
    views: dict[str, str] = first.module.VIEWS
    return views


def _drop_views(names: Iterable[str]) -> None:
    for name in reversed(list(names)):
        op.execute(f"DROP VIEW {name}")


def _create_views(views: Mapping[str, str]) -> None:
    """Create the views: Postgres would take the day in the time zone of whoever asks."""
    is_postgres = op.get_context().dialect.name == "postgresql"
    for name, query in views.items():
        table = "gradings" if name.startswith("gradings") else "requests"
        at = f"{table}.created_at"
        day = f"date({at} AT TIME ZONE 'UTC')" if is_postgres else f"date({at})"
        op.execute(f"CREATE VIEW {name} AS {query.replace('{day}', day)}")
