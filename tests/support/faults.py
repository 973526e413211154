"""What each fault did, in one table: nothing acknowledged is lost, nothing fails through us."""

from dataclasses import astuple, dataclass
from enum import StrEnum

from tests.support.acknowledged import lost_labels, what_is_wrong
from tests.support.load import Load, Tally
from tests.support.proxy import Proxy

HEADER = ("fault", "served", "failed", "acknowledged", "lost", "kills", "ended", "note")


class Fault(StrEnum):
    """Each has a test here, and a line in docs/faults.md."""

    KILLED = "proxy killed"
    DISK_FULL = "disk full"
    LOCKED = "database locked"
    FILE_GONE = "database file gone"
    READ_ONLY = "database read-only"
    CORRUPT = "database corrupt"
    CLOCK = "clock jumps"
    POSTGRES_KILLED = "Postgres killed"
    NO_CONNECTION = "no Postgres connection free"
    BRAIN_KILLED = "brain killed"
    BRAIN_STOPPED = "brain stopped"
    JUDGE = "judge away or hanging"
    UPSTREAM_FAILS = "model fails"
    UPSTREAM_HANGS = "model hangs"
    STREAM_CUT = "stream cut by a model"
    STREAM_EMPTY = "empty streams"
    REDACTED = "answers redacted"
    NO_CREDIT = "provider out of credit"
    RATE_LIMITED = "limits of rate"
    HOSTILE = "hostile requests"


@dataclass(frozen=True)
class Row:
    """Of one fault: requests served and failed through us, labels acknowledged and lost, how often
    the test killed the proxy, and how often the fault ended it."""

    fault: Fault
    served: int
    failed: int
    acknowledged: int
    lost: int
    kills: int
    ended: int
    note: str


@dataclass(frozen=True)
class Attacks:
    """Hostile keys that were tried, and by how much the worst moved the others."""

    tried: int
    points: float
    cost: float

    @property
    def line(self) -> str:
        """Say it in one line."""
        return (
            f"attacks of keys tried {self.tried}; the others moved by at most {self.points:.1f} "
            f"points, their cost {self.cost:.2f} times"
        )


def conclude(
    rows: list[Row],
    fault: Fault,
    proxy: Proxy,
    load: Load,
    note: str,
    *,
    cuts: bool = False,
    broken: bool = False,
    allowed: int = 0,
) -> None:
    """Add the fault's row, and hold it to the promise. The proxy has been ended.

    Connections that are cut are part of the fault with ``cuts``, and streams that do not end with
    ``broken``, and so many failed requests as are ``allowed``; else they are failures.
    """
    tally = load.tally
    database = str(proxy.config["messplus"]["database"])
    lost = lost_labels(database, tally.acknowledged)
    failed = tally.failed + (0 if cuts else tally.cut) + (0 if broken else tally.broken)
    failed = max(failed - allowed, 0)
    acknowledged = len(tally.acknowledged)
    counts = tally.served, failed, acknowledged, len(lost), proxy.kills, proxy.ended
    rows.append(Row(fault, *counts, _note(tally, note)))
    assert failed == 0, f"{tally.words}, {tally.cut} connections cut\n{proxy.log[-4000:]}"
    assert lost == {}
    assert proxy.ended == 0, proxy.log[-4000:]
    assert tally.served > 0
    assert tally.acknowledged
    assert what_is_wrong(database) == ()


def _note(tally: Tally, note: str) -> str:
    told = [note, f"slowest {tally.slowest:.1f} s"]
    told += [f"{tally.refused} verdicts got 503"] if tally.refused else []
    told += [f"{tally.unrouted} as without the plugin"] if tally.unrouted else []
    return ", ".join(told)


def render(rows: list[Row]) -> list[str]:
    """The table, one line a fault."""
    cells = [HEADER, *([str(cell) for cell in astuple(row)] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADER) - 1)]
    return [
        " | ".join([*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[-1]])
        for line in cells
    ]


def total(rows: list[Row]) -> str:
    """The sums of the table, in one line."""
    kills, acknowledged, lost, ended = (
        sum(column)
        for column in zip(
            *((row.kills, row.acknowledged, row.lost, row.ended) for row in rows), strict=True
        )
    )
    return f"kills {kills}, acknowledged {acknowledged}, lost {lost}, ended by a fault {ended}"
