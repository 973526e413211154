"""`docs/faults.md` says what happens under every fault that the suite of faults brings about."""

from tests.support.faults import Fault
from tests.support.markdown import ROOT, Document

PAGE = Document(ROOT / "docs" / "faults.md")


def test_every_fault_has_its_line() -> None:
    described = [row.cells["Fault"] for row in PAGE.under("Faults")]

    assert described == [str(fault) for fault in Fault]


def test_every_fault_is_brought_about() -> None:
    suite = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests/faults").glob("test_*.py")
    )

    assert [fault.name for fault in Fault if f"Fault.{fault.name}" not in suite] == []
