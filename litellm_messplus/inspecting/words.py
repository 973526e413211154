"""Numbers and texts of the log as a terminal may show them."""

from typing import Any

UNKNOWN = "unknown"


def exact(value: Any) -> str:
    """Write a number as it is logged: the shortest text that reads back as the same number."""
    return UNKNOWN if value is None else repr(value)


def rounded(value: float | None) -> str:
    """Write a number that was worked out, to 6 digits."""
    return UNKNOWN if value is None else f"{value:.6g}"


def plain(text: str | None, longest: int = 1000) -> str:
    """Keep what is printable, on one line: clients write ids, comments and errors as they like."""
    printable = "".join(each if each.isprintable() else " " for each in text or "")
    return printable if len(printable) <= longest else f"{printable[: longest - 3]}..."
