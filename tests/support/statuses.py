"""Statuses by hand."""

from collections.abc import Sequence
from dataclasses import replace

from litellm_messplus.label_kind import LabelKind
from litellm_messplus.labels.agreement import Agreement
from litellm_messplus.labels.influence import Audit
from litellm_messplus.labels.parity.position import PositionBias
from litellm_messplus.status.build import Rows, Span, build_status
from litellm_messplus.status.labels import Given, Grading
from litellm_messplus.status.queries import Calls, Newest, Totals
from litellm_messplus.status.report import LiveLevel, Overhead, Status
from litellm_messplus.store.audits import KeyVerdicts
from litellm_messplus.store.spending import LabelCosts

KEY = ("llama", "default")
TOTALS = Totals(
    requests=1000,
    counted=1000,
    labelled=900,
    answered=800,
    effective=800.0,
    rate=0.7,
    mean_alpha=0.7,
    cost=10.0,
    priced=1000,
    priced_cost=10.0,
    explorations=100,
    exploration_cost=1.0,
    compared=1000,
    compared_cost=10.0,
    compared_cost_largest=40.0,
)
NEWEST = Newest(alpha=0.7, queue=1.5, price=0.02, candidates=("large", "small"), largest="large")
CALLS = [Calls("large", 400, 400.0, 0.9, 0.04), Calls("small", 500, 500.0, 0.5, 0.004)]
SOURCES = (
    Given(LabelKind.FEEDBACK, "feedback", 400, 200.0, 200.0, 400),
    Given(LabelKind.JUDGE, "judge", 500, 400.0, 400.0, 400),
)
AGREEMENT = Agreement(80, 10, 10, 100)
GRADING = Grading(520, 500, 1.25, 3, 1.0, False, AGREEMENT, PositionBias(30, 28))
AUDIT = Audit(AGREEMENT, silent_satisfied=240, silent_unsatisfied=60)
OVERHEAD = Overhead(990, 10, 0.002, 0.001, 0.497, 0.004, 0.002, 0.994, 0.25)


def status(
    *,
    live: LiveLevel | None = None,
    counters: dict[str, int] | None = None,
    is_out_of_reach: bool = False,
    last: Totals | None = None,
    grading: Grading = GRADING,
    keys: Sequence[KeyVerdicts] = (),
    **changes: float | None,
) -> Status:
    """Of one promise: 1000 requests, 800 with a verdict, unless changed."""
    overall = replace(TOTALS, **changes)  # type: ignore[arg-type]
    if "answered" in changes and "effective" not in changes:
        overall = replace(overall, effective=float(overall.answered))
    if "requests" in changes:
        overall = replace(overall, counted=overall.requests)
    spans = [
        Span({KEY: totals}, {}, {KEY: SOURCES}, {KEY: OVERHEAD})
        for totals in (overall, last or overall)
    ]
    rows = Rows(
        overall=spans[0],
        last=spans[1],
        calls={KEY: CALLS},
        newest={KEY: NEWEST},
        out_of_reach={KEY} if is_out_of_reach else set(),
        audits={KEY: AUDIT},
        judging={(KEY[0], "gpt-judge"): grading},
        keys=keys,
        label_costs={KEY[0]: LabelCosts(saved=31.0, unseen=1.0, judging=1.25)},
    )
    return build_status(rows, 500, {KEY: live} if live else None, counters)


EMPTY = Rows()
