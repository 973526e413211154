"""What a demo came to: the promise, what was kept of it, and at which cost."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from litellm_messplus.demo.session import Outcome, Reported, Sent

SLACK = 0.03
"""How far below alpha a rate may be and still count as kept, by chance alone."""


@dataclass(frozen=True, slots=True)
class Report:
    """Costs are sums in the zoo's unit, exploration calls included; shares are from 0 to 1.

    ``satisfaction`` is the truth, which the demo alone knows. ``satisfaction_reported`` is what the
    proxy makes of the labels, with its interval at 95 %, and ``labelled`` the share of requests
    that have one. ``unrouted`` requests, which LiteLLM served by its own choice, are in no other
    figure.
    """

    alpha: float
    satisfaction: float
    labels: str
    labelled: float
    satisfaction_reported: float | None
    satisfaction_low: float | None
    satisfaction_high: float | None
    cost: float
    cost_largest: float
    model_mix: dict[str, float]
    explorations: int
    requests: int
    unrouted: int
    queue: float

    @classmethod
    def of(
        cls,
        labels: str,
        sent: Sequence[Sent],
        outcomes: Sequence[Outcome],
        reported: Reported,
        unrouted: int = 0,
    ) -> "Report":
        """Over the requests of a session, in order; not empty. ``outcomes`` are those of ``sent``,
        and ``labels`` the mode."""
        results = [outcome["outcome"] for outcome in outcomes]
        served = Counter(str(result["served"]) for result in results)
        return cls(
            alpha=outcomes[-1]["alpha"],
            satisfaction=sum(request.satisfied for request in sent) / len(sent),
            labels=labels,
            labelled=sum(result["satisfaction"] is not None for result in results) / len(results),
            satisfaction_reported=reported.rate,
            satisfaction_low=reported.low,
            satisfaction_high=reported.high,
            cost=sum(result["cost"] for result in results),
            cost_largest=sum(result["cost_largest"] for result in results),
            model_mix={name: count / len(results) for name, count in served.most_common()},
            explorations=sum(outcome["is_exploration"] for outcome in outcomes),
            requests=len(outcomes),
            unrouted=unrouted,
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
    kept = "green" if report.satisfaction >= report.alpha - SLACK else "red"
    shown.add_row("kept: share satisfied", f"[{kept}]{report.satisfaction:.1%}[/{kept}]")
    shown.add_section()
    shown.add_row(f"labelled (--labels {report.labels})", f"{report.labelled:.1%}")
    shown.add_row("satisfied by the labels", _reported(report))
    shown.add_section()
    shown.add_row("cost, explorations included", f"{report.cost:.6f}")
    shown.add_row("cost of always calling the largest", f"{report.cost_largest:.6f}")
    shown.add_row("saved", f"{1 - report.cost / report.cost_largest:.1%}")
    shown.add_section()
    for name, share in report.model_mix.items():
        shown.add_row(f"served by {name}", f"{share:.1%}")
    if report.unrouted:
        shown.add_row("left to LiteLLM, not counted here", str(report.unrouted))
    shown.add_row("explorations", str(report.explorations))
    shown.add_row("virtual queue at the last decision", f"{report.queue:.2f}")
    return shown


def _reported(report: Report) -> str:
    rate, low, high = (
        report.satisfaction_reported,
        report.satisfaction_low,
        report.satisfaction_high,
    )
    if rate is None or low is None or high is None:
        return "unknown"
    return f"{rate:.1%} ({low:.1%} to {high:.1%})"
