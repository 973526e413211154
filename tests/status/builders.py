"""Statuses by hand."""

from dataclasses import replace

from litellm_messplus.status.build import Rows, build_status
from litellm_messplus.status.live import LiveLevel
from litellm_messplus.status.queries import Calls, Newest, Totals
from litellm_messplus.status.report import Status

KEY = ("llama", "default")
TOTALS = Totals(
    requests=1000,
    answered=800,
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
NEWEST = Newest(alpha=0.7, queue=1.5, price=0.02, candidates=("large", "small"))
CALLS = [Calls("large", 400, 0.9, 0.04), Calls("small", 500, 0.5, 0.004)]


def status(
    *,
    live: LiveLevel | None = None,
    counters: dict[str, int] | None = None,
    is_out_of_reach: bool = False,
    last: Totals | None = None,
    **changes: float | None,
) -> Status:
    """Of one promise: 1000 requests, 800 answered, unless changed."""
    overall = replace(TOTALS, **changes)  # type: ignore[arg-type]
    rows = Rows(
        overall={KEY: overall},
        last={KEY: last or overall},
        without_cost={},
        last_without_cost={},
        calls={KEY: CALLS},
        newest={KEY: NEWEST},
        out_of_reach={KEY} if is_out_of_reach else set(),
        calibration=(),
    )
    return build_status(rows, 500, {KEY: live} if live else None, counters)


EMPTY = Rows({}, {}, {}, {}, {}, {}, set(), ())
