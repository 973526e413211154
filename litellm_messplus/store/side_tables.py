"""Tables beside the log: snapshots, what stands for pruned rows, workers, who is signed in, and
which migrations made the tables."""

from sqlalchemy import (
    JSON,
    Column,
    Integer,
    LargeBinary,
    String,
    Table,
)

from litellm_messplus.store.columns import (
    Position,
    UtcDateTime,
    metadata,
    optional,
    required,
)

SETTINGS = "What the fingerprint is of, by name; NULL where a version before kept it."

page_sign_ins = Table(
    "page_sign_ins",
    metadata,
    Column(
        "token_hash", String(64), primary_key=True, comment="SHA-256 of what the browser holds."
    ),
    required("kind", String(16), "`code` (opens one session) or `session`."),
    required("expires_at", UtcDateTime, "Until when it is taken, UTC."),
    comment="Who may see the page: one-time codes and the sessions that they opened.",
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("zoo", String(255), primary_key=True, comment="The zoo whose state it is."),
    Column("position", Position, primary_key=True, comment="The log is folded up to here."),
    required("fingerprint", String(64), "Of the settings that the fold depends on."),
    required("created_at", UtcDateTime, "When it was taken, UTC."),
    required("state", LargeBinary, "Predictor, queues and running means."),
    optional("settings", JSON, SETTINGS),
    comment="A cache of the fold of the log: a start goes on from the newest one that fits.",
)

log_base = Table(
    "log_base",
    metadata,
    Column("zoo", String(255), primary_key=True, comment="The zoo whose state it is."),
    required("position", Position, "The log is folded up to here."),
    required("fingerprint", String(64), "Of the settings that the fold depends on."),
    optional("settings", JSON, SETTINGS),
    required("taught", JSON, "How many lessons of each batch are in the state."),
    required("created_at", UtcDateTime, "When it was kept, UTC."),
    required("state", LargeBinary, "Predictor, queues and running means."),
    comment="What pruned rows have left behind: the fold of a zoo goes on from here, for the rows "
    "before it are not all there any more.",
)

worker_counters = Table(
    "worker_counters",
    metadata,
    Column(
        "worker",
        String(64),
        primary_key=True,
        comment="The id of a worker process; `ended` stands for all that are gone.",
    ),
    required("started_at", UtcDateTime, "When it began to count, UTC."),
    required("updated_at", UtcDateTime, "When it was last heard of, UTC."),
    required("counts", JSON, "What it counted, by name."),
    comment="What the workers of all proxies on this database counted; a worker that is gone is "
    "added to the row `ended`, which begins anew when none runs.",
)

conversation_key = Table(
    "conversation_key",
    metadata,
    Column("id", Integer, primary_key=True, comment="Always 1."),
    required("key", String(64), "32 random bytes, in hexadecimal digits."),
    comment="One row: what the digests of prompts are keyed by, drawn when the table was made. "
    "Whoever does not know it cannot guess a prompt from its digest.",
)

label_precedence = Table(
    "label_precedence",
    metadata,
    Column("zoo", String(255), primary_key=True, comment="The zoo."),
    Column("kind", String(16), primary_key=True, comment="A kind of labels."),
    optional("rank", Integer, "1 is the strongest; NULL does not count."),
    comment="Whose word counts first, as configured when a proxy last started with the zoo.",
)

schema_history = Table(
    "schema_history",
    metadata,
    Column("revision", String(32), primary_key=True, comment="A migration that was applied."),
    required("digest", String(64), "SHA-256 of the migration's text, as it was then."),
    required(
        "version", String(64), "The version of litellm-messplus that applied it, or first noted it."
    ),
    required("applied_at", UtcDateTime, "When, UTC."),
    comment="Which migrations made the tables and views: a start refuses a database that other "
    "ones made.",
)
