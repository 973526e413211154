"""Many labels on one call, and what a key did in a day, are looked up by an index.

The views say the same as before: whether a label is its source's newest is asked by itself, which
an index answers. Asked together with the rest it took the square of the labels on a call.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alembic import op
from alembic.script import ScriptDirectory

revision = "0012"
down_revision = "0010"

COUNTS = """{label}.weight > 0
        AND {rank} > 0
        AND NOT EXISTS (
            SELECT 1
            FROM labels AS newer
            WHERE newer.call_id = {label}.call_id
                AND newer.source = {label}.source
                AND newer.position > {label}.position
                AND newer.weight > 0
        )
        AND NOT EXISTS (
            SELECT 1
            FROM labels AS other
            WHERE other.call_id = {label}.call_id
                AND other.source <> {label}.source
                AND other.weight > 0
                AND NOT EXISTS (
                    SELECT 1
                    FROM labels AS newer
                    WHERE newer.call_id = other.call_id
                        AND newer.source = other.source
                        AND newer.position > other.position
                        AND newer.weight > 0
                )
                AND {other_rank} > 0
                AND ({other_rank}, other.value, other.position)
                    < ({rank}, {label}.value, {label}.position)
        )"""
"""Whether a label beside a row of `requests` is the one of its call that counts."""


def upgrade() -> None:
    _module("0004")._drop_views(_views())
    op.create_index(
        "ix_labels_call_id_source_position", "labels", ["call_id", "source", "position"]
    )
    op.drop_index("ix_labels_call_id", "labels")
    op.create_index("ix_labels_created_at", "labels", ["created_at"])
    op.create_index(
        "ix_requests_created_at_level_key",
        "requests",
        ["created_at", "zoo", "service_level", "key_hash"],
    )
    op.drop_index("ix_requests_created_at", "requests")
    _module("0004")._create_views({name: _faster(query) for name, query in _views().items()})


def downgrade() -> None:
    _module("0004")._drop_views(_views())
    op.create_index("ix_requests_created_at", "requests", ["created_at"])
    op.drop_index("ix_requests_created_at_level_key", "requests")
    op.drop_index("ix_labels_created_at", "labels")
    op.create_index("ix_labels_call_id", "labels", ["call_id"])
    op.drop_index("ix_labels_call_id_source_position", "labels")
    _module("0004")._create_views(_views())


def _views() -> Mapping[str, str]:
    """Return the views as they were, each after those that it reads."""
    labels, energy = _module("0004"), _module("0005")
    before = energy._views(labels)
    return {
        "verdicts": labels.VERDICTS.format(counts=labels._counts("labels")),
        **{name: energy._changed(name, before[name]) for name in energy.CHANGES},
    }


def _faster(query: str) -> str:
    labels = _module("0004")
    for label in ("labels", "verdict"):
        ranks = {name: labels.RANK.format(label=of) for name, of in _ranked(label).items()}
        query = query.replace(labels._counts(label), COUNTS.format(label=label, **ranks))
    return query


def _ranked(label: str) -> dict[str, str]:
    return {"rank": label, "other_rank": "other"}


def _module(revision: str) -> Any:
    """Load an earlier migration, which made the views."""
    return ScriptDirectory(str(Path(__file__).parents[1])).get_revision(revision).module
