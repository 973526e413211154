"""The tables of `docs/sql.md`, as the code declares them: `python -m tests.support.sql_page` writes
them anew."""

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
from tests.support.markdown import ROOT, Document

SQL = Document(ROOT / "docs" / "sql.md")
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


def described(table: Table) -> str:
    rows = (f"| `{each.name}` | {_kind(each)} | {each.comment} |\n" for each in table.columns)
    return "".join(("| Column | Type | Meaning |\n| --- | --- | --- |\n", *rows))


def _kind(column: Column[Any]) -> str:
    return KINDS[type(column.type)] + (" or NULL" if column.nullable else "")


def write() -> None:
    text = SQL.text
    for table in metadata.tables.values():
        found = re.search(rf"^### `{table.name}`\n(?s:.*?)\n((?:\|.*\n)+)", text, re.MULTILINE)
        assert found is not None, table.name
        text = text[: found.start(1)] + described(table) + text[found.end(1) :]
    SQL.path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
