"""What Datasette is told of a history, so that who opens it reads what each table and column means.

The words of tables and columns are those of the schema itself; a view keeps none in the database,
so they stand here.
"""

from pathlib import Path
from typing import Any

from sqlalchemy import Table

from litellm_messplus.errors import MessplusError
from litellm_messplus.store.tables import metadata

VIEWS = {
    "current_labels": "What each source says of each call: its newest label, whether it counts or "
    "not.",
    "verdicts": "The label of each call that counts.",
    "request_outcomes": "One row a request: what served it, whether it satisfied, and what it "
    "cost. Most questions start here.",
    "daily_service_levels": "Satisfaction and cost, a row for each day, zoo and service level.",
    "calls_per_model": "What each model was called for, a row for each zoo, candidate, model and "
    "role.",
    "savings": "Requests that got an answer, against always calling the largest candidate, over "
    "the whole time: a row for each zoo and service level.",
    "exploration_share": "How much was explored, a row for each zoo and service level.",
    "open_requests": "Requests without a verdict: those with an answer, and those under way.",
    "gradings_per_day": "What judges were asked and what they cost, a row for each day, zoo and "
    "judge.",
    "outcomes_per_key": "Satisfaction, cost and savings, a row for each day, zoo, service level "
    "and key.",
    "outcomes_per_team": "Satisfaction, cost and savings, a row for each day, zoo, service level "
    "and team.",
    "outcomes_per_tag": "Satisfaction, cost and savings, a row for each day, zoo, service level "
    "and tag.",
    "forecasts": "One row for each change of a zoo's mode after which requests were routed. It has "
    "the forecast of that time, and what then happened.",
    "conversations": "Conversations that were held or might have been, a row for each.",
    "outcomes_per_hour": "Satisfaction, cost and savings, a row for each hour, zoo and service "
    "level.",
}
SUMS = (
    *("request_sums", "call_sums", "label_sums", "grading_sums"),
    *("hourly_request_sums", "hourly_call_sums"),
)
"""Sums that have a view beside them, which adds the same up from the log."""
HIDDEN = frozenset(
    {
        *("log_head", "log_base", "snapshots", "worker_counters", "page_sign_ins"),
        *("conversation_key", "schema_history"),
    }
)
"""Tables of the plugin's own, out of the list; they can still be asked for."""
QUESTIONS = {
    "was_the_promise_kept": (
        "Was the promise kept, day by day?",
        "SELECT day, zoo, service_level, alpha, satisfaction, answered, requests, cost "
        "FROM daily_service_levels ORDER BY day DESC",
    ),
    "what_was_saved": (
        "What was saved against always calling the largest?",
        "SELECT zoo, service_level, requests, cost, cost_largest, saved, saved_share FROM savings",
    ),
    "which_keys_cost_most": (
        "Which keys cost most, over the whole log?",
        "SELECT key_alias, key_hash, zoo, SUM(requests) AS requests, SUM(cost) AS cost, "
        "SUM(saved) AS saved FROM outcomes_per_key GROUP BY key_hash, key_alias, zoo "
        "ORDER BY SUM(cost) DESC",
    ),
    "which_did_not_satisfy": (
        "Which of the newest requests did not satisfy?",
        "SELECT request_id, created_at, zoo, served, satisfaction, satisfaction_kind, cost "
        "FROM request_outcomes WHERE satisfaction < 0.5 ORDER BY created_at DESC LIMIT 100",
    ),
}
"""By the name in the address: the title, and the SQL."""


class NoFileError(MessplusError):
    """A history that Datasette cannot open."""


def datasette_metadata(database: str) -> dict[str, Any]:
    """Describe the history in that file, under the name that Datasette gives it.

    Raises NoFileError for the URL of another database than SQLite.
    """
    if "://" in database and not database.startswith("sqlite"):
        raise NoFileError(f"--database: given {database!r}; allowed: a SQLite file")
    shown = {
        "title": "Routing history",
        "description": "Every request, call and label that litellm-messplus has logged. Times are "
        "UTC, costs in the zoo's unit; NULL is unknown, never zero.",
        "tables": {
            **{name: _table(table) for name, table in metadata.tables.items()},
            **{name: {"description": words} for name, words in VIEWS.items()},
            **{f"logged_{name}": {"hidden": True} for name in SUMS},
            "alembic_version": {"hidden": True},
        },
        "queries": {name: {"title": title, "sql": sql} for name, (title, sql) in QUESTIONS.items()},
    }
    return {"databases": {Path(database.rpartition("///")[2]).stem: shown}}


def _table(table: Table) -> dict[str, Any]:
    found: dict[str, Any] = {
        "description": table.comment,
        "columns": {column.name: column.comment for column in table.columns if column.comment},
    }
    if table.name in HIDDEN:
        return {**found, "hidden": True}
    return {**found, "sort_desc": "position"} if "position" in table.columns else found
