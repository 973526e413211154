"""Rows of a terminal: however narrow it is, no id, date or figure is cut or broken."""

from contextlib import redirect_stdout
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.runtime.terminal import Rows, numbers, show, whole, words

ID = "18eab06e-2030-4f0e-9d2b-5a0fd8a3c9be"
DATE = "2026-11-23 17:43:36"
REASON = "the only one that can take it"


def shown(rows: Rows, width: int) -> list[str]:
    """The lines that a terminal of so many columns is sent."""
    written = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(written):
        patch.setenv("COLUMNS", str(width))
        show(rows)
    return written.getvalue().splitlines()


def of_requests(*ids: str, model: str = "openai/tiny-small") -> Rows:
    columns = (*whole("request", "time, UTC", "chosen"), *numbers("cost"), *words("reason"))
    rows = Rows("requests", columns)
    for each in ids:
        rows.add(each, DATE, model, "3.416e-05", REASON)
    return rows


def test_a_wide_terminal_gets_a_table() -> None:
    title, *lines = shown(of_requests(ID), 140)

    assert title.strip() == "requests"
    (row,) = [line for line in lines if ID in line]
    assert all(each in row for each in (DATE, "openai/tiny-small", "3.416e-05", REASON))


def test_a_narrow_terminal_gets_one_row_below_the_other() -> None:
    assert shown(of_requests(ID, "r2"), 80) == [
        "requests",
        ID,
        f"  time, UTC {DATE}, chosen openai/tiny-small, cost 3.416e-05",
        f"  reason {REASON}",
        "r2",
        f"  time, UTC {DATE}, chosen openai/tiny-small, cost 3.416e-05",
        f"  reason {REASON}",
    ]


def test_an_empty_cell_takes_no_room_in_a_list() -> None:
    rows = Rows("calls", (*whole("call"), *words("error"), *numbers("seconds")))
    rows.add("c" * 30, "", "0.5")

    assert shown(rows, 20)[-1] == "  seconds 0.5"


NAMES = st.text("abcdefgh/-.0123456789模型", min_size=1, max_size=60)


@given(st.lists(NAMES, min_size=1, max_size=4), NAMES, st.integers(10, 160))
def test_nothing_but_words_is_cut_or_broken(ids: list[str], model: str, width: int) -> None:
    lines = shown(of_requests(*ids, model=model), width)

    for each in (*ids, DATE, model, "3.416e-05"):
        assert any(each in line for line in lines)
    assert "…" not in "".join(lines)
