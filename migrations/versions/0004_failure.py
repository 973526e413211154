"""Who failed, of a call without an answer."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column(
        "calls",
        sa.Column(
            "failure",
            sa.String(16),
            comment="Who failed: `upstream`, `no_deployment`, `deadline`, `client_gone`, or "
            "`refused` where the request itself was at fault; NULL where an answer came.",
        ),
    )
    known = sa.text("failure IS NOT NULL")
    op.create_index(
        "ix_calls_failure",
        "calls",
        ["failure", "position"],
        sqlite_where=known,
        postgresql_where=known,
    )


def downgrade() -> None:
    op.drop_index("ix_calls_failure", "calls")
    op.drop_column("calls", "failure")
