"""Statuses by hand."""

from collections.abc import Sequence
from dataclasses import replace

from litellm_messplus.figures.figure import Plain
from litellm_messplus.figures.tally import Tally
from litellm_messplus.labels.agreement import Agreement, PositionBias
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.status.build import Rows, Span, build_status
from litellm_messplus.status.figures import LiveLevel
from litellm_messplus.status.labels import Given, Grading
from litellm_messplus.status.reading import Newest
from litellm_messplus.store.judging import LabelCosts
from litellm_messplus.store.key_activity import KeyStatus

KEY = ("llama", "default")


def totals(
    *,
    requests: int = 1000,
    judged: int = 800,
    failed: int = 0,
    effective: float | None = None,
    rate: float | None = 0.7,
    mean_alpha: float | None = 0.7,
    **sums: float,
) -> Tally:
    """So many requests, of which so many have a verdict, worth ``effective`` equal ones."""
    weight = float(judged) if effective is None else effective
    return replace(
        TALLY,
        requests=requests,
        alphas=(mean_alpha or 0.7) * requests,
        judged=judged,
        succeeded=requests - failed,
        failed=failed,
        weight=weight,
        weight_squared=weight,
        weighted_satisfaction=(rate or 0.0) * weight,
        weighted_alpha=(mean_alpha or 0.7) * weight,
        **sums,  # type: ignore[arg-type]
    )


TALLY = Tally(
    labelled=900,
    cost=10.0,
    priced=1000,
    priced_cost=10.0,
    explorations=100,
    exploration_cost=1.0,
    compared=1000,
    compared_cost=9.0,
    compared_cost_largest=40.0,
    timed=990,
    late=10,
    predicting_seconds=1.98,
    deciding_seconds=0.99,
    call_seconds=492.03,
)
TOTALS = totals()
NEWEST = Newest(alpha=0.7, queue=1.5, price=0.02, largest="large")
SOURCES = (
    Given(LabelKind.FEEDBACK, "feedback", 400, 200.0, 400),
    Given(LabelKind.JUDGE, "judge", 500, 400.0, 400),
)
AGREEMENT = Agreement(80, 10, 10, 100)
GRADING = Grading(520, 500, 1.25, 3, 1.0, False, AGREEMENT, PositionBias(30, 28))


def status(
    *,
    live: LiveLevel | None = None,
    counters: dict[str, int] | None = None,
    is_out_of_reach: bool = False,
    last: Tally | None = None,
    grading: Grading = GRADING,
    keys: Sequence[KeyStatus] = (),
    **changes: float | None,
) -> Plain:
    """Of one promise: 1000 requests, 800 with a verdict, unless changed."""
    found = rows(
        is_out_of_reach=is_out_of_reach,
        last=last,
        grading=grading,
        keys=keys,
        **changes,
    )
    return build_status(found, 500, {KEY: live} if live else None, counters)


def rows(
    *,
    is_out_of_reach: bool = False,
    last: Tally | None = None,
    grading: Grading = GRADING,
    keys: Sequence[KeyStatus] = (),
    **changes: float | None,
) -> Rows:
    """What the log says of that promise."""
    overall = totals(**changes)  # type: ignore[arg-type]
    spans = [Span({KEY: each}, {KEY: SOURCES}) for each in (overall, last or overall)]
    return Rows(
        overall=spans[0],
        last=spans[1],
        newest={KEY: NEWEST},
        out_of_reach={KEY} if is_out_of_reach else set(),
        judging={(KEY[0], "gpt-judge"): grading},
        keys=keys,
        label_costs={KEY[0]: LabelCosts(saved=31.0, unseen=1.0, judging=1.25)},
    )


EMPTY = Rows()
