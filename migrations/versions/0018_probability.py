"""With which probability a label was bought: rates weigh it by how many requests it stands for.

The views say the same as before of labels that no draw bought, which all are so far.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import op
from alembic.script import ScriptDirectory

revision = "0018"
down_revision = "0017"

STANDS_FOR = "(verdict.weight / COALESCE(verdict.probability, 1.0))"
"""What the verdict weighs in a rate."""
WEIGHED = {
    "verdicts": {"FROM labels\n    JOIN": ", labels.probability FROM labels\n    JOIN"},
    "request_outcomes": {
        "verdict.weight AS satisfaction_weight": f"{STANDS_FOR} AS satisfaction_weight"
    },
    "logged_call_sums": {
        "THEN verdict.weight END": f"THEN {STANDS_FOR} END",
        "THEN verdict.weight * verdict.weight END": f"THEN {STANDS_FOR} * {STANDS_FOR} END",
        "THEN verdict.weight * verdict.value END": f"THEN {STANDS_FOR} * verdict.value END",
    },
}
"""What is written anew in each view, each after those that it reads."""


def upgrade() -> None:
    for table, column in _columns():
        op.add_column(table, column)
    _replace({name: _weighed(name, query) for name, query in _before().items()})


def downgrade() -> None:
    before = _before()
    narrower = {"verdicts": before.pop("verdicts")}  # no view reads it
    _drop(narrower)
    _create(narrower)
    _replace(before)
    for table, column in _columns():
        op.drop_column(table, column.name)


def _columns() -> Iterator[tuple[str, sa.Column[Any]]]:
    yield (
        "requests",
        sa.Column(
            "label_probability",
            sa.Float(),
            nullable=True,
            comment="The probability of the draw that bought labels of its answers; NULL where "
            "none are bought.",
        ),
    )
    yield (
        "labels",
        sa.Column(
            "probability",
            sa.Float(),
            nullable=True,
            comment="The probability of the draw that bought it: it stands for one divided by that "
            "many requests. NULL where no draw did.",
        ),
    )
    yield (
        "gradings",
        sa.Column(
            "preferred",
            sa.String(16),
            nullable=True,
            comment="Of a comparison, the place of the better answer: `first`, `second` or "
            "`neither`; NULL of a grading.",
        ),
    )


def _before() -> dict[str, str]:
    """Give the views that change, as they were."""
    indexes, sums = _module("0012"), _module("0013")
    views = {name: indexes._faster(query) for name, query in indexes._views().items()}
    found = {**views, **sums._logged()}
    return {name: found[name] for name in WEIGHED}


def _weighed(name: str, query: str) -> str:
    for old, new in WEIGHED[name].items():
        assert old in query, (name, old)
        query = query.replace(old, new)
    return query


def _replace(views: dict[str, str]) -> None:
    """Replace views: Postgres keeps those that read them; SQLite asks for them by name alone."""
    if op.get_context().dialect.name == "sqlite":
        _drop(views)
        _create(views)
        return
    for name, query in views.items():
        op.execute(f"CREATE OR REPLACE VIEW {name} AS {_with_day(query)}")


def _drop(views: dict[str, str]) -> None:
    for name in reversed(list(views)):
        op.execute(f"DROP VIEW {name}")


def _create(views: dict[str, str]) -> None:
    for name, query in views.items():
        op.execute(f"CREATE VIEW {name} AS {_with_day(query)}")


def _with_day(query: str) -> str:
    """Put the day into a query: Postgres would take it in the time zone of whoever asks."""
    is_postgres = op.get_context().dialect.name == "postgresql"
    at = "requests.created_at"
    day = f"date({at} AT TIME ZONE 'UTC')" if is_postgres else f"date({at})"
    return query.replace("{day}", day)


def _module(revision: str) -> Any:
    """Load an earlier migration, which made the views."""
    return ScriptDirectory(str(Path(__file__).parents[1])).get_revision(revision).module
