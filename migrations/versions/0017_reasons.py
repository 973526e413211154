"""Why a candidate was chosen is one of a few words, and whether alpha was within reach a column.

It was a sentence, which the status looked for by its beginning: where the features of a prompt came
too late, another sentence began it, and a zoo that could not hold alpha seemed able to. That they
came too late is told by `features`, which are NULL then. The downgrade makes sentences of the words
again, without the numbers that policy `paper` wrote into its own.
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

SENTENCES = {
    "ahead": "ahead of alpha",
    "behind": "behind alpha",
    "out_of_reach": "no candidate is expected to hold alpha: best value",
    "unlabelled": "no label has come yet: the largest",
    "unseen_probe": "probe beside the choice, unseen",
    "first_request": "first request",
    "no_debt": "cheapest: no debt",
}
"""The words `probe` and `exploration` were sentences already."""
LATE = "no features in time: "
NONE_HEALTHY = "no deployment is healthy"
PENALTY = "least V*E - Q*s"
COMMENTS = ("Why this candidate, in words.", "Why this candidate, in one of a few words.")

requests = sa.table(
    "requests",
    sa.column("reason", sa.Text),
    sa.column("is_within_reach", sa.Boolean),
    sa.column("features", sa.LargeBinary),
)


def upgrade() -> None:
    op.add_column(
        "requests",
        sa.Column(
            "is_within_reach",
            sa.Boolean(),
            nullable=False,
            server_default=sa.true(),
            comment="Whether a candidate was expected to be able to hold alpha, as far as the "
            "policy tells.",
        ),
    )
    said = requests.c.reason
    plain = sa.func.replace(said, LATE, "")
    op.execute(
        requests.update().values(
            is_within_reach=~said.contains(SENTENCES["out_of_reach"], autoescape=True),
            reason=sa.case(
                (said.startswith(NONE_HEALTHY), "none_healthy"),
                *((plain == sentence, word) for word, sentence in SENTENCES.items()),
                (plain.startswith(PENALTY, autoescape=True), "least_penalty"),
                else_=plain,
            ),
        )
    )
    _say(1)


def downgrade() -> None:
    said = requests.c.reason
    op.execute(
        requests.update().values(
            reason=sa.case((requests.c.features.is_(None), LATE), else_=sa.literal("")).concat(
                sa.case(
                    (said == "none_healthy", NONE_HEALTHY),
                    *((said == word, sentence) for word, sentence in SENTENCES.items()),
                    (said == "least_penalty", PENALTY),
                    else_=said,
                )
            )
        )
    )
    op.drop_column("requests", "is_within_reach")
    _say(0)


def _say(which: int) -> None:
    """Set the column's comment; SQLite keeps none."""
    if op.get_context().dialect.name != "sqlite":
        op.alter_column("requests", "reason", comment=COMMENTS[which])
