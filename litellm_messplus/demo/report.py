"""What a demo came to: the promise, what was kept of it, and at which cost."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from litellm_messplus.demo.session import Outcome


@dataclass(frozen=True, slots=True)
class Report:
    """Costs are sums in the zoo's unit, exploration calls included; shares are from 0 to 1."""

    alpha: float
    satisfaction: float
    cost: float
    cost_largest: float
    model_mix: dict[str, float]
    explorations: int
    requests: int
    queue: float

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> "Report":
        """Over the requests of a session, in order; not empty."""
        results = [outcome["outcome"] for outcome in outcomes]
        served = Counter(str(result["served"]) for result in results)
        return cls(
            alpha=outcomes[-1]["alpha"],
            satisfaction=sum(result["satisfaction"] or 0.0 for result in results) / len(results),
            cost=sum(result["cost"] for result in results),
            cost_largest=sum(result["cost_largest"] for result in results),
            model_mix={name: count / len(results) for name, count in served.most_common()},
            explorations=sum(outcome["is_exploration"] for outcome in outcomes),
            requests=len(outcomes),
            queue=outcomes[-1]["queue"],
        )

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


def table(report: Report) -> Table:
    """The report for people."""
    shown = Table(title=f"{report.requests} requests through the proxy", show_header=False)
    shown.add_column(justify="left")
    shown.add_column(justify="right")
    shown.add_row("promised: share satisfied (alpha)", f"{report.alpha:.1%}")
    kept = "green" if report.satisfaction >= report.alpha - 0.03 else "red"
    shown.add_row("kept: share satisfied", f"[{kept}]{report.satisfaction:.1%}[/{kept}]")
    shown.add_section()
    shown.add_row("cost, explorations included", f"{report.cost:.6f}")
    shown.add_row("cost of always calling the largest", f"{report.cost_largest:.6f}")
    shown.add_row("saved", f"{1 - report.cost / report.cost_largest:.1%}")
    shown.add_section()
    for name, share in report.model_mix.items():
        shown.add_row(f"served by {name}", f"{share:.1%}")
    shown.add_row("explorations", str(report.explorations))
    shown.add_row("virtual queue at the last decision", f"{report.queue:.2f}")
    return shown
