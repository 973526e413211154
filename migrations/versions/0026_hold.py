"""Which requests belong together, and which of them were held: columns, and a view of both."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0024"

COLUMNS = (
    (
        "conversation",
        sa.String(64),
        "The id of the request that began its conversation; NULL where none are held.",
    ),
    (
        "line",
        sa.String(64),
        "The id of the request that began its line: one prompt that grows.",
    ),
    (
        "prefix",
        sa.String(32),
        "Keyed digest of its whole prompt, with which the prompts that go on from it begin.",
    ),
    ("turn", sa.Integer(), "Its number in the line, from 1."),
    (
        "hold",
        sa.String(16),
        "Why it was held, or why it was held no longer; NULL where it was decided.",
    ),
)

CONVERSATIONS = """
    WITH turns AS (
        SELECT
            requests.conversation,
            requests.line,
            requests.zoo,
            requests.service_level,
            requests.created_at,
            requests.position,
            requests.hold,
            outcomes.served,
            outcomes.cost,
            outcomes.satisfaction,
            LAG(outcomes.served) OVER (PARTITION BY requests.line ORDER BY requests.position)
                AS served_before,
            MAX(CASE WHEN outcomes.satisfaction IS NOT NULL THEN requests.position END)
                OVER (PARTITION BY requests.conversation) AS judged_last
        FROM requests
        JOIN request_outcomes AS outcomes ON outcomes.request_id = requests.request_id
        WHERE requests.conversation IS NOT NULL
    )
    SELECT
        conversation,
        zoo,
        MIN(service_level) AS service_level,
        MIN(created_at) AS began_at,
        MAX(created_at) AS last_at,
        COUNT(*) AS turns,
        COUNT(DISTINCT line) AS lines,
        SUM(CASE WHEN hold IN ('tool_loop', 'state', 'warm') THEN 1 ELSE 0 END) AS held,
        SUM(CASE WHEN served <> served_before THEN 1 ELSE 0 END) AS switches,
        SUM(cost) AS cost,
        MAX(CASE WHEN position = judged_last THEN satisfaction END) AS verdict
    FROM turns
    GROUP BY conversation, zoo
"""


def upgrade() -> None:
    for name, kind, comment in COLUMNS:
        op.add_column("requests", sa.Column(name, kind, nullable=True, comment=comment))
    op.execute(f"CREATE VIEW conversations AS {CONVERSATIONS}")


def downgrade() -> None:
    op.execute("DROP VIEW conversations")
    for name, _, _ in reversed(COLUMNS):
        op.drop_column("requests", name)
