"""Features that came too late are NULL, and what it took to have those that did not is kept."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column(
        "requests",
        sa.Column(
            "encode_seconds",
            sa.Float(),
            nullable=True,
            comment="How long the features took, waiting included; NULL where they came too late.",
        ),
    )
    _alter_features(
        nullable=True,
        comment="Features of the prompt: little-endian float32; NULL where they came too late.",
    )


def downgrade() -> None:
    none = sa.text("UPDATE requests SET features = :none WHERE features IS NULL")
    op.execute(none.bindparams(sa.bindparam("none", b"", sa.LargeBinary())))
    _alter_features(nullable=False, comment="Features of the prompt: little-endian float32.")
    op.drop_column("requests", "encode_seconds")


def _alter_features(*, nullable: bool, comment: str) -> None:
    """Alter a column: SQLite cannot, so it writes the table anew, and its views must be away
    then."""
    views = _sqlite_views()
    for name, _ in views:
        op.execute(f"DROP VIEW {name}")
    with op.batch_alter_table("requests") as batch:
        batch.alter_column(
            "features", existing_type=sa.LargeBinary(), nullable=nullable, comment=comment
        )
    for _, definition in views:
        op.execute(definition)


def _sqlite_views() -> list[tuple[str, str]]:
    if op.get_context().dialect.name != "sqlite":
        return []
    found = op.get_bind().execute(
        sa.text("SELECT name, sql FROM sqlite_master WHERE type = 'view' ORDER BY rowid")
    )
    return [(name, definition) for name, definition in found]
