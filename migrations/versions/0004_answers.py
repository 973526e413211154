"""The surface of an answer, and what it predicted."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from litellm_messplus.store.tables import calls

revision = "0004"
down_revision = "0003"

COLUMNS: dict[str, Any] = {
    "answer_surface": sa.LargeBinary(),
    "answer_version": sa.String(64),
    "prompt_said": sa.Float(),
    "answer_said": sa.Float(),
}


def upgrade() -> None:
    for name, kind in COLUMNS.items():
        known = calls.columns.get(name)
        comment = None if known is None else known.comment
        op.add_column("calls", sa.Column(name, kind, nullable=True, comment=comment))


def downgrade() -> None:
    for name in reversed(COLUMNS):
        op.drop_column("calls", name)
