"""What an agent's work with one zoo comes to, and the table of several."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from examples.agent.session import Bill, Work


@dataclass(frozen=True, slots=True)
class Report:
    """The sums over all tasks with one zoo: ``calls`` are requests, ``unrouted`` those of them that
    the plugin did not decide in time; ``switches`` lie inside tool loops, ``rescues`` are those of
    them at which a better model took over from one that was held; ``cached`` is the share of the
    prompts' tokens that a cache had."""

    zoo: str
    tasks: int
    solved: int
    calls: int
    unrouted: int
    switches: int
    rescues: int
    cached: float
    cost: float

    @classmethod
    def of(cls, zoo: str, done: Sequence[tuple[Work, Bill]]) -> "Report":
        """Add up the tasks."""
        calls = sum(len(work.completions) for work, _ in done)
        read = sum(bill.prompt_tokens for _, bill in done)
        return cls(
            zoo,
            tasks=len(done),
            solved=sum(work.is_solved for work, _ in done),
            calls=calls,
            unrouted=calls - sum(len(work.routed) for work, _ in done),
            switches=sum(work.switches for work, _ in done),
            rescues=sum(bill.rescues for _, bill in done),
            cached=sum(bill.cached_tokens for _, bill in done) / read if read else 0.0,
            cost=sum(bill.cost for _, bill in done),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return asdict(self)


def table(reports: Iterable[Report]) -> Table:
    """Draw a column for each zoo."""
    found = list(reports)
    drawn = Table(title="An agent with two tools")
    drawn.add_column("")
    for report in found:
        drawn.add_column(report.zoo, justify="right")
    rows = {
        "tasks solved": [f"{report.solved} of {report.tasks}" for report in found],
        "calls of models": [str(report.calls) for report in found],
        "not decided in time": [str(report.unrouted) for report in found],
        "switches inside tool loops": [str(report.switches) for report in found],
        "  of these, a better model's help": [str(report.rescues) for report in found],
        "read from the prompt cache": [f"{report.cached:.0%}" for report in found],
        "cost, dollars per 1,000 tasks": [
            f"{1000 * report.cost / report.tasks:.3f}" for report in found
        ],
    }
    for name, values in rows.items():
        drawn.add_row(name, *values)
    return drawn
