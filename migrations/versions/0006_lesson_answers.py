"""The surface of a lesson's answer."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from litellm_messplus.store.tables import lessons

revision = "0006"
down_revision = "0005"

COLUMNS: dict[str, Any] = {"answer_surface": sa.LargeBinary(), "answer_version": sa.String(64)}


def upgrade() -> None:
    for name, kind in COLUMNS.items():
        known = lessons.columns.get(name)
        comment = None if known is None else known.comment
        op.add_column("lessons", sa.Column(name, kind, nullable=True, comment=comment))


def downgrade() -> None:
    for name in reversed(COLUMNS):
        op.drop_column("lessons", name)
