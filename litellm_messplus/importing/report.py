"""What became of a file of labels."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from litellm_messplus.importing.rows import Refused

SHOWN = 20
"""Refused rows that are shown, the first; all are counted."""


@dataclass(frozen=True, slots=True)
class Report:
    """``written`` labels are new in the log, or would be in a dry run; ``known`` are there already,
    or twice in the file; ``left_out`` are scores of other names."""

    file: str
    form: str
    sources: Sequence[str]
    rows: int
    written: int
    known: int
    left_out: int
    refused: Sequence[Refused]
    is_dry_run: bool

    @property
    def is_in_vain(self) -> bool:
        """Whether rows were refused and no other row was of use."""
        return bool(self.refused) and not self.written and not self.known

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "file": self.file,
            "format": self.form,
            "sources": list(self.sources),
            "rows": self.rows,
            "written": 0 if self.is_dry_run else self.written,
            "would_write": self.written if self.is_dry_run else 0,
            "already_there": self.known,
            "left_out": self.left_out,
            "refused": len(self.refused),
            "refused_by_reason": self._by_reason(),
            "first_refused": [
                {"line": each.line, "why": each.why.value, "reason": each.reason}
                for each in self._first_refused()
            ],
            "dry_run": self.is_dry_run,
        }

    def lines(self) -> list[str]:
        """For people."""
        did = "would be written" if self.is_dry_run else "are in the log"
        told = [
            f"{self.file} (format {self.form}): {self.rows} rows",
            f"  {self.written} new labels {did}"
            + (f" ({', '.join(self.sources)})" if self.sources else ""),
        ]
        if self.known:
            told.append(f"  {self.known} were there already, or twice in the file: they count once")
        if self.left_out:
            told.append(f"  {self.left_out} scores of other names were left out")
        told.append(f"  {len(self.refused)} rows were refused{self._reasons()}")
        told += [f"    line {each.line}: {each.reason}" for each in self._first_refused()]
        if len(self.refused) > SHOWN:
            told.append(f"    and {len(self.refused) - SHOWN} more")
        if self.is_dry_run:
            told.append("dry run: nothing was written")
        elif self.written:
            told.append("a running proxy counts them in a second or two")
        return told

    def _first_refused(self) -> list[Refused]:
        return sorted(self.refused, key=lambda each: each.line)[:SHOWN]

    def _by_reason(self) -> dict[str, int]:
        return dict(Counter(each.why.value for each in self.refused))

    def _reasons(self) -> str:
        counts = [f"{why}: {count}" for why, count in self._by_reason().items()]
        return f" ({', '.join(counts)})" if counts else ""
