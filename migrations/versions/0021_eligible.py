"""Which candidates could take a request, where not all could."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0016"


def upgrade() -> None:
    op.add_column(
        "requests",
        sa.Column(
            "eligible",
            sa.JSON(none_as_null=True),
            nullable=True,
            comment="The healthy candidates that could take the request, where not all could: the "
            "others were ranked last. With one of them alone the request was forced.",
        ),
    )


def downgrade() -> None:
    op.drop_column("requests", "eligible")
