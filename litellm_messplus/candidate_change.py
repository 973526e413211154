"""The changes of a candidate that are logged."""

from enum import StrEnum


class Change(StrEnum):
    """What became of a candidate, by the names in the log."""

    APPEARED = "appeared"
    PRICED = "priced"
    GONE = "gone"
