"""What is seen of a prompt at once, beside the encoder's features."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column(
        "requests",
        sa.Column(
            "surface",
            sa.LargeBinary(),
            nullable=True,
            comment="What is seen of the prompt at once (length, numbers, code, turns, ...): "
            "little-endian float32, read by the heads beside the features.",
        ),
    )
    op.add_column(
        "requests",
        sa.Column(
            "surface_version",
            sa.String(length=64),
            nullable=True,
            comment="What the numbers of the surface mean.",
        ),
    )


def downgrade() -> None:
    op.drop_column("requests", "surface_version")
    op.drop_column("requests", "surface")
