"""What conversations need: tokens written to a prompt cache, and the key of their digests."""

import os

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0018"


def upgrade() -> None:
    op.add_column(
        "calls",
        sa.Column(
            "written_tokens",
            sa.Integer(),
            nullable=True,
            comment="Those of the prompt that it wrote to its cache.",
        ),
    )
    key = op.create_table(
        "conversation_key",
        sa.Column("id", sa.Integer(), primary_key=True, comment="Always 1."),
        sa.Column(
            "key", sa.String(64), nullable=False, comment="32 random bytes, in hexadecimal digits."
        ),
        comment="One row: what the digests of prompts are keyed by, drawn when the table was made. "
        "Whoever does not know it cannot guess a prompt from its digest.",
    )
    op.bulk_insert(key, [{"id": 1, "key": os.urandom(32).hex()}])


def downgrade() -> None:
    op.drop_table("conversation_key")
    op.drop_column("calls", "written_tokens")
