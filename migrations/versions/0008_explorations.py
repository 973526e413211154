"""What an exploration is under `adaptive`, in the words of the columns."""

from alembic import op

revision = "0008"
down_revision = "0007"

IS_EXPLORATION = (
    "Whether other candidates were called beside it.",
    "Whether something else than the best choice was tried: beside the served candidate, or "
    "(policy `adaptive`) in its place.",
)
PROBABILITY = (
    "p_t: how likely the exploration was.",
    "p_t: how likely an exploration was; under `adaptive`, one in the place of the best choice.",
)


def upgrade() -> None:
    _say(1)


def downgrade() -> None:
    _say(0)


def _say(which: int) -> None:
    """Write the comments; SQLite keeps none."""
    if op.get_context().dialect.name == "sqlite":
        return
    op.alter_column("requests", "is_exploration", comment=IS_EXPLORATION[which])
    op.alter_column("requests", "exploration_probability", comment=PROBABILITY[which])
