"""Room for the ids of others on Postgres, which refuses the whole row of one that is too long.

LiteLLM takes 256 characters of `x-litellm-call-id`, and its own ids of responses have 425 and more.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

COLUMNS = (("requests", "litellm_call_id"), ("calls", "response_id"))


def upgrade() -> None:
    """Lengthen the columns; SQLite takes any length."""
    if op.get_context().dialect.name != "sqlite":
        for table, column in COLUMNS:
            op.alter_column(table, column, type_=sa.String(length=1024))


def downgrade() -> None:
    if op.get_context().dialect.name != "sqlite":
        for table, column in COLUMNS:
            shortened = f"substr({column}, 1, 255)"
            op.alter_column(table, column, type_=sa.String(length=255), postgresql_using=shortened)
