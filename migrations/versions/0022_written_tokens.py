"""Tokens of a prompt that an endpoint wrote to its cache, which some charge for."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0016"


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


def downgrade() -> None:
    op.drop_column("calls", "written_tokens")
