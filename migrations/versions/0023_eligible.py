"""Which candidates could take a request, where not all could."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"

COMMENTS = {
    "estimated_cost": (
        "Expected cost per healthy candidate, in the zoo's unit.",
        "Expected cost per healthy candidate that could take it, in the zoo's unit.",
    ),
    "estimated_satisfaction": (
        "Predicted probability of satisfaction per healthy candidate.",
        "Predicted probability of satisfaction per healthy candidate that could take it.",
    ),
    "estimated_cost_largest": (
        "Expected cost of the largest candidate, for savings.",
        "Expected cost of `largest`, for savings.",
    ),
    "largest": (
        "The zoo's largest candidate at that time.",
        "What savings compare with: the zoo's largest candidate, or the most expensive that could "
        "take the request where that one could not.",
    ),
}


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
    op.add_column(
        "requests",
        sa.Column(
            "gated_by",
            sa.JSON(none_as_null=True),
            nullable=True,
            comment="What told them apart, in words, such as `images`; NULL where all could.",
        ),
    )
    _say(1)


def downgrade() -> None:
    op.drop_column("requests", "gated_by")
    op.drop_column("requests", "eligible")
    _say(0)


def _say(which: int) -> None:
    """Write the comments, which SQLite does not keep."""
    if op.get_context().dialect.name != "sqlite":
        for column, comments in COMMENTS.items():
            op.alter_column("requests", column, comment=comments[which])
