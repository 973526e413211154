"""What the features of a request took in joules, where that is measured."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column(
        "requests",
        sa.Column(
            "encode_joules",
            sa.Float(),
            nullable=True,
            comment="Energy above idle that the features took; NULL where not measured.",
        ),
    )


def downgrade() -> None:
    op.drop_column("requests", "encode_joules")
