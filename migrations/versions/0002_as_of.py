"""What a decision was made from, so that it can be computed again: the position of the state, the
expected shortfall in flight, and what else it depended on."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from litellm_messplus.store.tables import requests

revision = "0002"
down_revision = "0001"

COLUMNS: dict[str, Any] = {
    "as_of": sa.BigInteger(),
    "in_flight": sa.Float(),
    "inputs": sa.JSON(none_as_null=True),
}


def upgrade() -> None:
    for name, kind in COLUMNS.items():
        known = requests.columns.get(name)
        comment = None if known is None else known.comment
        op.add_column("requests", sa.Column(name, kind, nullable=True, comment=comment))


def downgrade() -> None:
    for name in reversed(COLUMNS):
        op.drop_column("requests", name)
