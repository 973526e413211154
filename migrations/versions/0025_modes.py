"""The modes of zoos, and which requests were served as before."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0027"


def upgrade() -> None:
    for column in _columns():
        op.add_column("requests", column)
    op.create_table(
        "zoo_modes",
        _required("zoo", sa.String(255), "The zoo."),
        _required("revision", sa.Integer(), "Counts its changes, from 1."),
        _required("mode", sa.String(16), "`watch`, `canary` or `on`."),
        _required("share", sa.Float(), "The share of conversations routed under `canary`."),
        _optional(
            "before",
            sa.String(255),
            "What serves the others: `litellm`, or a candidate; NULL where there is no way back.",
        ),
        _required(
            "by",
            sa.String(255),
            "Who changed it: the hash of a key, `file`, or `way back`.",
        ),
        _required("reason", sa.Text(), "Why."),
        _required("at", sa.DateTime(timezone=True), "When, UTC."),
        _required(
            "file_fingerprint",
            sa.String(64),
            "Of the value in the configuration file at that time: another value there is a change.",
        ),
        _optional("forecast", sa.JSON(none_as_null=True), "What was forecast of routing then."),
        _optional(
            "happened",
            sa.JSON(none_as_null=True),
            "What the routed requests came to under the revision before.",
        ),
        sa.PrimaryKeyConstraint("zoo", "revision"),
        comment="How far the router has taken over each zoo, one row a change; the newest holds. A "
        "zoo without a row is in the mode of the configuration file.",
    )


def downgrade() -> None:
    op.drop_table("zoo_modes")
    for column in reversed(_columns()):
        op.drop_column("requests", column.name)


def _required(name: str, kind: Any, comment: str) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, comment=comment)


def _optional(name: str, kind: Any, comment: str) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=True, comment=comment)


def _columns() -> tuple[sa.Column[Any], ...]:
    return (
        sa.Column(
            "arm",
            sa.String(16),
            nullable=False,
            server_default="routed",
            comment="`routed`, or `before`: what served before the zoo was switched on served it, "
            "and the router decided aside.",
        ),
        sa.Column(
            "would_choose",
            sa.String(255),
            nullable=True,
            comment="Served as before: the candidate that the router would have chosen; NULL where "
            "it was not worked out in time, and of a routed request.",
        ),
        sa.Column(
            "would_cost",
            sa.Float(),
            nullable=True,
            comment="Served as before: what that candidate, and the calls beside it, were expected "
            "to cost.",
        ),
        sa.Column(
            "sample_probability",
            sa.Float(),
            nullable=True,
            comment="Served as before: the probability of the draw that had another model called "
            "unseen; NULL where none was called.",
        ),
        sa.Column(
            "conversation_draw",
            sa.Float(),
            nullable=True,
            comment="The draw of its conversation, from 0 to 1: below the share of a canary it is "
            "routed. NULL under `mode: on`.",
        ),
    )
