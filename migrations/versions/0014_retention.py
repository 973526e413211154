"""Where a pruned log begins, and the states that stand for what was pruned."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

SETTINGS = "What the fingerprint is of, by name; NULL where a version before kept it."


def upgrade() -> None:
    op.add_column(
        "log_head",
        sa.Column(
            "start",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
            server_default="0",
            comment="Requests and lessons up to here are pruned; 0 where nothing was.",
        ),
    )
    op.add_column("snapshots", sa.Column("settings", sa.JSON(), nullable=True, comment=SETTINGS))
    op.create_table(
        "log_base",
        sa.Column("zoo", sa.String(255), primary_key=True, comment="The zoo whose state it is."),
        sa.Column(
            "position",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
            comment="The log is folded up to here.",
        ),
        sa.Column(
            "fingerprint",
            sa.String(64),
            nullable=False,
            comment="Of the settings that the fold depends on.",
        ),
        sa.Column("settings", sa.JSON(), nullable=True, comment=SETTINGS),
        sa.Column(
            "taught",
            sa.JSON(),
            nullable=False,
            comment="How many lessons of each batch are in the state.",
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When it was kept, UTC.",
        ),
        sa.Column(
            "state",
            sa.LargeBinary(),
            nullable=False,
            comment="Predictor, queues and running means.",
        ),
        comment="What pruned rows have left behind: the fold of a zoo goes on from here, for the "
        "rows before it are not all there any more.",
    )


def downgrade() -> None:
    op.drop_table("log_base")
    op.drop_column("snapshots", "settings")
    op.drop_column("log_head", "start")
