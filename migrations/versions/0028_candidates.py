"""What became of the candidates of a zoo while it was served."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    op.create_table(
        "candidate_events",
        sa.Column("event_id", sa.String(64), primary_key=True, comment="Our own id of the change."),
        sa.Column(
            "position",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
            unique=True,
            comment="Place in the log.",
        ),
        sa.Column(
            "zoo", sa.String(255), nullable=False, comment="The zoo that the candidate is one of."
        ),
        sa.Column("candidate", sa.String(255), nullable=False, comment="The candidate."),
        sa.Column(
            "number",
            sa.Integer(),
            nullable=False,
            comment="Number of the change among those of the candidate, from 1.",
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When a worker saw it, UTC.",
        ),
        sa.Column(
            "change", sa.String(16), nullable=False, comment="`appeared`, `priced` or `gone`."
        ),
        sa.Column(
            "price",
            sa.JSON(none_as_null=True),
            nullable=True,
            comment="What it costs, by part; NULL where it is gone.",
        ),
        sa.UniqueConstraint("zoo", "candidate", "number", name="uq_candidate_events_number"),
        comment="One row a time that a model came to a zoo, changed its price, or went, as "
        "LiteLLM's router showed it; models of the configuration that did neither have none.",
    )


def downgrade() -> None:
    op.drop_table("candidate_events")
