"""docs/retention.md names every column that erasing a key overwrites, and no other."""

from litellm_messplus.store.erasing import ERASED
from tests.support.markdown import ROOT, Document

PAGE = Document(ROOT / "docs" / "retention.md")


def test_what_is_overwritten_is_told_column_by_column() -> None:
    told = {
        (row.cells["Table"].strip("`"), name.strip(" `"))
        for row in PAGE.under("Erasing one key or one user")
        for name in row.cells["Column"].split(",")
    }
    assert told == {(table.name, name) for table, values in ERASED.items() for name in values}
