"""`docs/evidence/labels.md` has every case of the benchmark of keys, as the benchmark prints it."""

from benchmarks.keys import ALONE, COST, COUNTED, FEW, HONEST, MOVED, TOGETHER, Case, markdown
from tests.support.markdown import ROOT, Document

COUNT = "Honest labels that count"
ROWS = {
    row.cells["Keys"]: row.cells
    for row in Document(ROOT / "docs" / "evidence" / "labels.md").rows
    if COUNT in row.cells
}


def figure(case: Case, column: str) -> float:
    return float(ROWS[case.name][column].partition(" ")[0])


def test_the_table_has_every_case_in_the_columns_that_are_printed() -> None:
    assert list(ROWS) == [case.name for case in (*HONEST, *ALONE, *TOGETHER, *FEW)]
    assert next(markdown({"cases": []})) == f"| {' | '.join(ROWS[HONEST[0].name])} |"


def test_honest_labels_count_and_hostile_keys_stay_within_their_bounds() -> None:
    for case in HONEST:
        assert figure(case, COUNT) >= 100.0 * COUNTED
    for case in (*ALONE, *TOGETHER):
        assert abs(figure(case, "The others' satisfaction")) <= case.hostile * MOVED
        assert figure(case, "Their cost") <= 100.0 * case.hostile * (COST - 1.0)
