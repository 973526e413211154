"""The overhead for people: what a request takes before its call, beside the call."""

from collections.abc import Callable, Iterator

from litellm_messplus.status.report import LevelStatus, Overhead


def overhead_rows(level: LevelStatus) -> Iterator[tuple[str, str, str]]:
    """What it is, of the whole time, and of the last window."""
    for name, cell in _CELLS.items():
        yield name, _of(level.overall.overhead, cell), _of(level.last.overhead, cell)


def _of(found: Overhead | None, cell: Callable[[Overhead], str]) -> str:
    return "unknown" if found is None else cell(found)


def _time(seconds: float, share: float) -> str:
    return f"{1000.0 * seconds:.3g} ms, {share:.2%} of all time"


def _joules(joules: float | None) -> str:
    return "not measured" if joules is None else f"{joules:.3g} J a request"


_CELLS: dict[str, Callable[[Overhead], str]] = {
    "predicting": lambda found: _time(found.predicting_seconds, found.predicting_share),
    "deciding": lambda found: _time(found.deciding_seconds, found.deciding_share),
    "the call": lambda found: _time(found.call_seconds, found.call_share),
    "joules of predicting": lambda found: _joules(found.predicting_joules),
}
