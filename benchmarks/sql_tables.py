"""The tables of docs/tables.md, what each column means, from the schema: `make docs`."""

import re
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Date,
    Float,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
)
from sqlalchemy.types import TypeEngine

from litellm_messplus.store.rows import UtcDateTime
from litellm_messplus.store.tables import metadata

KINDS: dict[type[TypeEngine[Any]], str] = {
    UtcDateTime: "time",
    Date: "date",
    JSON: "JSON",
    LargeBinary: "bytes",
    Boolean: "boolean",
    Float: "number",
    BigInteger: "integer",
    Integer: "integer",
    Text: "text",
    String: "text",
}


def printed(page: str) -> str:
    """Return the page with up-to-date tables. Raises ValueError for a table that it lacks."""
    for table in metadata.tables.values():
        heading = f"### `{table.name}`\n\n"
        found = re.search(rf"^{heading}(?:[^|\n].*\n)+\n((?:\|.*\n)+)", page, re.MULTILINE)
        if found is None:
            raise ValueError(f"{table.name}: no table of its columns")
        page = page[: found.start()] + heading + _described(table) + page[found.end() :]
    return page


def _described(table: Table) -> str:
    rows = (f"| `{each.name}` | {_kind(each)} | {each.comment} |\n" for each in table.columns)
    return f"{table.comment}\n\n| Column | Type | Meaning |\n| --- | --- | --- |\n" + "".join(rows)


def _kind(column: Column[Any]) -> str:
    return KINDS[type(column.type)] + (" or NULL" if column.nullable else "")
