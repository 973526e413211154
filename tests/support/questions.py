"""The questions of `docs/sql.md`, with their SQL."""

from tests.support.markdown import ROOT, Document

BEGIN = "2026-03-01"
"""Where those begin that cover a period."""
OF_TAG = ("json_each(tags) AS tag", "json_array_elements_text(tags) AS tag(value)")
"""What the page says to write in place of that on Postgres."""


def questions(dialect: str = "sqlite", begin: str = BEGIN) -> dict[str, str]:
    """The SQL of each question, for a database, from a day on."""
    blocks = Document(ROOT / "docs" / "sql.md").blocks
    asked = [each for each in blocks if each.language == "sql"]
    found = {each.headings[-1]: each.code.replace(BEGIN, begin) for each in asked}
    if dialect == "sqlite":
        return found
    return {name: query.replace(*OF_TAG) for name, query in found.items()}
