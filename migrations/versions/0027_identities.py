"""Who asked, by the names that people know, and what each of them cost and got.

The views add up by the names as they are logged: what was pruned is in none of them but the one by
hour, which reads the sums.
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"

COMPARED = (
    "outcomes.status = 'success' AND outcomes.served_cost IS NOT NULL"
    " AND outcomes.cost_largest IS NOT NULL"
)
FIGURES = f"""
        COUNT(*) AS requests,
        COUNT(outcomes.satisfaction) AS answered,
        SUM(outcomes.satisfaction_weight * outcomes.satisfaction)
            / NULLIF(SUM(outcomes.satisfaction_weight), 0) AS satisfaction,
        SUM(outcomes.cost) AS cost,
        SUM(CASE WHEN {COMPARED} THEN outcomes.cost_largest - outcomes.cost END) AS saved,
        SUM(CASE WHEN {COMPARED} THEN outcomes.cost_largest - outcomes.cost END)
            / NULLIF(SUM(CASE WHEN {COMPARED} THEN outcomes.cost_largest END), 0) AS saved_share
    FROM request_outcomes AS outcomes
    JOIN requests ON requests.request_id = outcomes.request_id
"""
EACH = "outcomes.day, outcomes.zoo, outcomes.service_level"
VIEWS = {
    "outcomes_per_key": f"""
    SELECT {EACH}, requests.key_hash, MAX(requests.key_alias) AS key_alias, {FIGURES}
    GROUP BY {EACH}, requests.key_hash
    """,
    "outcomes_per_team": f"""
    SELECT {EACH}, requests.team_id, {FIGURES}
    GROUP BY {EACH}, requests.team_id
    """,
    "outcomes_per_tag": f"""
    SELECT {EACH}, {{tag}} AS tag, {FIGURES} {{tags}}
    GROUP BY {EACH}, {{tag}}
    """,
    "outcomes_per_hour": """
    SELECT
        day,
        zoo,
        service_level,
        hour,
        SUM(requests) AS requests,
        SUM(answered) AS answered,
        SUM(weighted_satisfaction) / NULLIF(SUM(weight), 0) AS satisfaction,
        SUM(cost) AS cost,
        SUM(compared_cost_largest - compared_cost) AS saved,
        SUM(compared_cost_largest - compared_cost) / NULLIF(SUM(compared_cost_largest), 0)
            AS saved_share
    FROM hourly_request_sums
    GROUP BY day, zoo, service_level, hour
    """,
}
TAGS = {
    "sqlite": ("tags.value", "CROSS JOIN json_each(requests.tags) AS tags"),
    "postgresql": (
        "tags.value",
        "CROSS JOIN LATERAL json_array_elements_text(requests.tags) AS tags(value)",
    ),
}


def upgrade() -> None:
    for column in _columns():
        op.add_column("requests", column)
    tag, tags = TAGS[op.get_context().dialect.name]
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query.format(tag=tag, tags=tags)}")


def downgrade() -> None:
    for name in VIEWS:
        op.execute(f"DROP VIEW {name}")
    for column in _columns():
        op.drop_column("requests", column.name)


def _columns() -> list[sa.Column[str]]:
    return [
        _optional("key_alias", sa.String(255), "The key's alias, where `store_identities` is on."),
        _optional("user_id", sa.String(255), "The key's user, where `store_identities` is on."),
        _optional(
            "end_user",
            sa.String(255),
            "The end user that the client named, where `store_identities` is on.",
        ),
        _optional(
            "tags",
            sa.JSON(none_as_null=True),
            "Tags of the request, its key and team, where `store_identities` is on.",
        ),
    ]


def _optional(name: str, kind: sa.types.TypeEngine[str], comment: str) -> sa.Column[str]:
    return sa.Column(name, kind, nullable=True, comment=comment)
