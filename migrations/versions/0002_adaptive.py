"""What policy `adaptive` decides from: its price, its prediction, and the chance of its choice."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

COLUMNS: dict[str, sa.Column[Any]] = {
    "aim": sa.Column(
        "aim",
        sa.Float(),
        nullable=True,
        comment="What the queue aimed at: alpha, a margin, and label noise corrected.",
    ),
    "expected_satisfaction": sa.Column(
        "expected_satisfaction",
        sa.Float(),
        nullable=True,
        comment="Predicted for the chosen candidate: what the queue carries until a label comes.",
    ),
    "price": sa.Column(
        "price",
        sa.Float(),
        nullable=True,
        comment="What one more satisfied request might cost; NULL under `paper`, which has V.",
    ),
    "propensity": sa.Column(
        "propensity",
        sa.Float(),
        nullable=True,
        comment="The probability with which the chosen candidate was chosen.",
    ),
    "exploration_calls": sa.Column(
        "exploration_calls",
        sa.Integer(),
        nullable=True,
        comment="Candidates that were to be called beside the chosen one.",
    ),
}


def upgrade() -> None:
    for column in COLUMNS.values():
        op.add_column("requests", column)


def downgrade() -> None:
    for name in COLUMNS:
        op.drop_column("requests", name)
