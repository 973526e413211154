"""What `messplus teach` adds to the log."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "lessons",
        sa.Column(
            "lesson_id",
            sa.String(80),
            primary_key=True,
            comment="The prompt's id, a dot, a number.",
        ),
        sa.Column(
            "position",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
            comment="Place in the log.",
            unique=True,
        ),
        sa.Column(
            "batch",
            sa.String(255),
            nullable=False,
            comment="Where it comes from; what is forgotten together.",
            index=True,
        ),
        sa.Column("zoo", sa.String(255), nullable=False, comment="The zoo that was taught."),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When it was taught, UTC.",
        ),
        sa.Column(
            "candidate", sa.String(255), nullable=False, comment="The candidate that it tells of."
        ),
        sa.Column(
            "encoder",
            sa.String(255),
            nullable=False,
            comment="The encoder that made the features.",
        ),
        sa.Column(
            "features",
            sa.LargeBinary(),
            nullable=True,
            comment="Features of the prompt: little-endian float32.",
        ),
        sa.Column(
            "surface",
            sa.LargeBinary(),
            nullable=True,
            comment="What is seen of the prompt at once: little-endian float32.",
        ),
        sa.Column(
            "surface_version",
            sa.String(64),
            nullable=True,
            comment="What the numbers of the surface mean.",
        ),
        sa.Column(
            "prompt_characters",
            sa.Integer(),
            nullable=False,
            comment="Length of the prompt's text.",
        ),
        sa.Column(
            "completion_tokens",
            sa.Float(),
            nullable=True,
            comment="Length of the answer; NULL where nobody knows.",
        ),
        sa.Column("value", sa.Float(), nullable=False, comment="Satisfaction from 0 to 1."),
        comment="What `messplus teach` added: labels that teach the predictor and count as no "
        "request.",
    )


def downgrade() -> None:
    op.drop_table("lessons")
