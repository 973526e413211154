"""The changes of a candidate that are logged."""

from enum import StrEnum


class Change(StrEnum):
    """The names in the log of what became of a candidate."""

    APPEARED = "appeared"
    PRICED = "priced"
    GONE = "gone"
