"""What every worker counted, so that any of them can tell the sum."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "worker_counters",
        sa.Column(
            "worker",
            sa.String(64),
            primary_key=True,
            comment="The id of a worker process; `ended` stands for all that are gone.",
        ),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When it began to count, UTC.",
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When it was last heard of, UTC.",
        ),
        sa.Column("counts", sa.JSON(), nullable=False, comment="What it counted, by name."),
        comment="What the workers of all proxies on this database counted; a worker that is gone "
        "is added to the row `ended`, which begins anew when none runs.",
    )
    op.execute(
        "INSERT INTO worker_counters (worker, started_at, updated_at, counts) "
        "VALUES ('ended', CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, '{}')"
    )


def downgrade() -> None:
    op.drop_table("worker_counters")
