"""A request's number is unique within its service level; the one it was decided with is kept.

Workers that decided at once gave the same number. Each request is numbered anew, in the order of
the log; where that changes `t`, `expected_t` keeps what it was. In a log of a single worker nothing
changes, and no row is written.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

T = (
    "Its number within the service level, from 1.",
    "Its number within the service level, from 1, without gaps.",
)
RENUMBER = """UPDATE requests SET expected_t = requests.t, t = numbered.t
FROM (
    SELECT request_id,
        ROW_NUMBER() OVER (PARTITION BY zoo, service_level ORDER BY position) AS t
    FROM requests
) AS numbered
WHERE numbered.request_id = requests.request_id AND numbered.t <> requests.t"""


def upgrade() -> None:
    op.add_column(
        "requests",
        sa.Column(
            "expected_t",
            sa.BigInteger(),
            nullable=True,
            comment="The number that it was decided with, of which its draws are: another one than "
            "`t` where several workers decided at once; NULL where it was `t`.",
        ),
    )
    op.execute(RENUMBER)
    op.create_index("ix_requests_level_t", "requests", ["zoo", "service_level", "t"], unique=True)
    _say(1)


def downgrade() -> None:
    op.drop_index("ix_requests_level_t", "requests")
    op.execute("UPDATE requests SET t = expected_t WHERE expected_t <> t")
    op.drop_column("requests", "expected_t")
    _say(0)


def _say(which: int) -> None:
    """Write the comments; SQLite keeps none."""
    if op.get_context().dialect.name != "sqlite":
        op.alter_column("requests", "t", comment=T[which])
