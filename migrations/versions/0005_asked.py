"""What a request asked for, and what it was granted."""

import sqlalchemy as sa
from alembic import op

from litellm_messplus.store.tables import requests

revision = "0005"
down_revision = "0004"

COLUMNS = ("asked", "granted")


def upgrade() -> None:
    for name in COLUMNS:
        known = requests.columns.get(name)
        comment = None if known is None else known.comment
        kind = sa.JSON(none_as_null=True)
        op.add_column("requests", sa.Column(name, kind, nullable=True, comment=comment))


def downgrade() -> None:
    for name in reversed(COLUMNS):
        op.drop_column("requests", name)
