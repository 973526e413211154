"""Energy that is measured in service: beside the calls, which stay as they were written.

From here on the views count a call at its measured cost, where there is one. What LiteLLM's cache
answered would have cost nothing at the largest candidate either.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import op
from alembic.script import ScriptDirectory

revision = "0005"
down_revision = "0004"

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

CHANGES = {
    "request_outcomes": {
        "explored.cost": "COALESCE(explored_energy.cost, explored.cost)",
        "FROM calls AS explored\n": """FROM calls AS explored
            LEFT JOIN call_energy AS explored_energy ON explored_energy.call_id = explored.call_id
""",
        "served.cost": "COALESCE(measured.cost, served.cost)",
        "AND served.role = 'served'": """AND served.role = 'served'
    LEFT JOIN call_energy AS measured
        ON measured.call_id = served.call_id""",
        "WHEN served.candidate = requests.largest": """WHEN served.is_cache_hit THEN served.cost
            WHEN served.candidate = requests.largest""",
        "AS cost_largest\n": """AS cost_largest,
        measured.call_id IS NOT NULL AS is_measured
""",
    },
    "daily_service_levels": {},
    "savings": {},
    "exploration_share": {},
    "open_requests": {},
    "calls_per_model": {
        "calls.cost": "COALESCE(energy.cost, calls.cost)",
        "FROM calls\n": """FROM calls
        LEFT JOIN call_energy AS energy ON energy.call_id = calls.call_id
""",
    },
}
"""What to replace in each view, in this order; those without a change read the first one."""


def upgrade() -> None:
    op.create_table(
        "call_energy",
        sa.Column(
            "call_id",
            sa.String(length=80),
            nullable=False,
            comment="The call that was measured.",
        ),
        sa.Column("position", POSITION, nullable=False, comment="Place in the log."),
        sa.Column(
            "request_id",
            sa.String(length=64),
            nullable=False,
            comment="The request of that call.",
        ),
        sa.Column(
            "measured_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When it was known, UTC: a minute after its end.",
        ),
        sa.Column(
            "joules",
            sa.Float(),
            nullable=False,
            comment="Its share of what was measured above idle.",
        ),
        sa.Column(
            "cost",
            sa.Float(),
            nullable=True,
            comment="In the zoo's unit; NULL where the price is not one of energy.",
        ),
        sa.PrimaryKeyConstraint("call_id"),
        sa.UniqueConstraint("position"),
        comment="One row a call whose energy was measured in service; `calls` keeps what was "
        "estimated at its end.",
    )
    op.create_index("ix_call_energy_request_id", "call_energy", ["request_id"])
    _comment_on_calls()
    op.add_column(
        "calls",
        sa.Column(
            "cached_tokens",
            sa.Integer(),
            nullable=True,
            comment="Those of the prompt that the endpoint had in its cache.",
        ),
    )
    op.add_column(
        "calls",
        sa.Column(
            "reasoning_tokens",
            sa.Integer(),
            nullable=True,
            comment="Those of the answer that were spent on reasoning.",
        ),
    )
    labels = _labels()
    labels._drop_views(CHANGES)
    before = _views(labels)
    labels._create_views({name: _changed(name, before[name]) for name in CHANGES})


def downgrade() -> None:
    labels = _labels()
    labels._drop_views(CHANGES)
    op.drop_column("calls", "reasoning_tokens")
    op.drop_column("calls", "cached_tokens")
    op.drop_table("call_energy")
    before = _views(labels)
    labels._create_views({name: before[name] for name in CHANGES})


def _comment_on_calls() -> None:
    """Write the comments; SQLite keeps none."""
    if op.get_context().dialect.name == "sqlite":
        return
    comments = {
        "prompt_tokens": "Tokens read; NULL where nobody knows.",
        "completion_tokens": "Tokens written; NULL where nobody knows.",
        "cost_source": "`measured`, `counted`, `estimated` or `unknown`.",
    }
    for column, comment in comments.items():
        op.alter_column("calls", column, comment=comment)


def _labels() -> Any:
    """Load the migration before this one, which made the views anew."""
    return ScriptDirectory(str(Path(__file__).parents[1])).get_revision("0004").module


def _views(labels: Any) -> Mapping[str, str]:
    return {
        **labels._first_views(),
        "request_outcomes": labels._request_outcomes(),
        "daily_service_levels": labels.DAILY_SERVICE_LEVELS,
    }


def _changed(name: str, query: str) -> str:
    for old, new in CHANGES[name].items():
        if old not in query:
            raise ValueError(f"{name} has no {old!r} to be replaced")
        query = query.replace(old, new)
    return query
