"""One learner for all workers: the inbox that they write to, how far it is read, and who learns."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from litellm_messplus.store.tables import metadata

revision = "0003"
down_revision = "0002"

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    _table(
        "inbox",
        sa.Column("id", POSITION, primary_key=True),
        sa.Column("worker", sa.String(64), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("records", sa.LargeBinary(), nullable=False),
    )
    _table(
        "deciders",
        sa.Column("worker", sa.String(64), primary_key=True),
        sa.Column("taken", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
    )
    _table(
        "learner",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("process", sa.String(255)),
        sa.Column("since", TIME),
        sa.Column("published_at", TIME),
        sa.Column("state", sa.LargeBinary()),
    )
    op.execute("INSERT INTO learner (id, epoch) VALUES (1, 0)")


def _table(name: str, *columns: sa.Column[Any]) -> None:
    known = metadata.tables.get(name)
    if known is not None:
        for column in columns:
            column.comment = known.columns[column.name].comment
    op.create_table(name, *columns, comment=None if known is None else known.comment)


def downgrade() -> None:
    for name in ("learner", "deciders", "inbox"):
        op.drop_table(name)
