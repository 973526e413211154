"""What a check found."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """How a check went. A note says what is worth knowing and is no damage."""

    SOUND = "sound"
    NOTE = "note"
    SKIPPED = "skipped"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """``advice`` says what to do, where there is something to do."""

    check: str
    outcome: Outcome
    told: str
    advice: str = ""

    @property
    def line(self) -> str:
        """Both in one line."""
        return f"{self.told}: {self.advice}" if self.advice else self.told


@dataclass(frozen=True, slots=True)
class Report:
    """All findings on one database, which is shown without its password."""

    database: str
    findings: tuple[Finding, ...]

    @property
    def wrong(self) -> list[Finding]:
        """Those that need something to be done."""
        return [finding for finding in self.findings if finding.outcome is Outcome.WRONG]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "database": self.database,
            "is_sound": not self.wrong,
            "findings": [asdict(finding) for finding in self.findings],
        }


def some(of: Iterable[object], count: int) -> str:
    """The first few in words, of so many."""
    shown = [str(each) for each in of]
    more = count - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
