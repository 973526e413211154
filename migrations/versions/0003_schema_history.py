"""A table that says which migrations made the others, in which text, and by which version."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "schema_history",
        sa.Column(
            "revision", sa.String(32), primary_key=True, comment="A migration that was applied."
        ),
        sa.Column(
            "digest",
            sa.String(64),
            nullable=False,
            comment="SHA-256 of the migration's text, as it was then.",
        ),
        sa.Column(
            "version",
            sa.String(64),
            nullable=False,
            comment="The version of litellm-messplus that applied it, or first noted it.",
        ),
        sa.Column("applied_at", sa.DateTime(timezone=True), nullable=False, comment="When, UTC."),
        comment="Which migrations made the tables and views: a start refuses a database that "
        "other ones made.",
    )


def downgrade() -> None:
    op.drop_table("schema_history")
