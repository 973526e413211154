"""The result of a demo: the promise, what was kept of it, and at which cost."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from examples.tiny_zoo.demo.asides import Aside
from examples.tiny_zoo.demo.session import Outcome, Reported, Sent
from litellm_messplus.figures.interval import Standing, standing, wilson
from litellm_messplus.figures.words import figure, percent, percent_around
from litellm_messplus.replay.summary import Hindsight

STYLES = {
    Standing.ON_TRACK: "green",
    Standing.BELOW: "red",
    Standing.TOO_EARLY: "yellow",
    Standing.FAILING: "bold red",
}
"""The style of each verdict."""

# What could have been had, known only once every model has answered every task.

WITHOUT_ASK_ALL = "not asked: --ask-all"
JOULES = "not known: the zoo counts in joules"
SHORT = "no model meets alpha"
TOLERANCE = 0.01
"""How far LiteLLM's costs and the zoo's may be apart, as a share, and still be the same money."""

Answers = Mapping[str, Aside]
"""Each candidate's answer to one task."""


@dataclass(frozen=True, slots=True)
class Alone:
    """The share satisfied and the total cost of one model that answers every task."""

    satisfaction: float
    cost: float


@dataclass(frozen=True, slots=True)
class Yardsticks:
    """The costs of all tasks by two yardsticks: the cheapest fixed mix of models that meets alpha,
    and the cheapest choice that knows every answer; and the totals of each model ``alone``. None,
    and empty, where they are not known; ``note`` is why, or what they do not keep."""

    hindsight_mix: float | None = None
    oracle: float | None = None
    note: str | None = WITHOUT_ASK_ALL
    alone: Mapping[str, Alone] = field(default_factory=dict)

    @classmethod
    def of(cls, answers: Sequence[Answers], outcomes: Sequence[Outcome]) -> "Yardsticks":
        """Compute them from every task's answers, in the order of ``outcomes``; not empty, and the
        same candidates for each."""
        unknown = _uncharged(answers) or _other_money(answers, outcomes)
        if unknown is not None:
            return cls(note=unknown)
        alpha = outcomes[-1]["alpha"]
        cost = np.array([[aside.cost for aside in row.values()] for row in answers], float)
        truth = np.array([[aside.satisfied for aside in row.values()] for row in answers], float)
        known = Hindsight.of(truth, cost, alpha)
        note = SHORT if known.satisfaction.max() < alpha else None
        totals = zip(answers[0], known.satisfaction.tolist(), known.cost.tolist(), strict=True)
        alone = {name: Alone(rate, total) for name, rate, total in totals}
        return cls(known.lp_cost, known.oracle_cost, note, alone)


def _uncharged(answers: Iterable[Answers]) -> str | None:
    """Explain why costs are unknown where LiteLLM states no cost."""
    for row in answers:
        for candidate, aside in row.items():
            if aside.cost is None:
                return f"not known: LiteLLM states no cost of {candidate}"
    return None


def _other_money(answers: Sequence[Answers], outcomes: Sequence[Outcome]) -> str | None:
    """Explain why costs are unknown where LiteLLM charges for a call what the zoo does not
    count."""
    charged: dict[str, float] = {}
    counted: dict[str, float] = {}
    for row, outcome in zip(answers, outcomes, strict=True):
        for candidate, aside, call in _alike(row, outcome):
            charged[candidate] = charged.get(candidate, 0.0) + (aside.cost or 0.0)
            counted[candidate] = counted.get(candidate, 0.0) + call["cost"]
    for candidate, cost in counted.items():
        if abs(charged[candidate] - cost) > TOLERANCE * cost:
            return (
                f"not known: LiteLLM charges {figure(charged[candidate], 'usd')} for calls of "
                f"{candidate} that the zoo counts as {figure(cost)}"
            )
    return None


def _alike(row: Answers, outcome: Outcome) -> Iterator[tuple[str, Aside, Mapping[str, Any]]]:
    """Yield calls of the request and aside that should cost the same: one deployment, equal
    tokens."""
    for call in outcome["calls"]:
        aside = row.get(call["candidate"])
        if aside is None or call["cost"] is None or call["is_cache_hit"]:
            continue
        tokens = (call["prompt_tokens"], call["completion_tokens"], call["cached_tokens"])
        if (call["deployment_id"], tokens) == (aside.deployment, aside.tokens):
            yield call["candidate"], aside, call


# What labels cost is in no request's cost: the judges' share of it is stated apart.


@dataclass(frozen=True, slots=True)
class Judging:
    """The dollars that judges had cost when the session began, at its half, and at its end; None
    where that is unknown."""

    before: float | None = None
    half: float | None = None
    after: float | None = None

    @property
    def halves(self) -> tuple[float, float] | None:
        """The cost of judges in each half of the session."""
        if self.before is None or self.half is None or self.after is None:
            return None
        return self.half - self.before, self.after - self.half

    def shares(
        self, results: Sequence[Mapping[str, Any]]
    ) -> tuple[float | None, float | None, float | None]:
        """Divide what all cost, judges too, by the cost of always calling the largest: over the
        whole session and over each half of it."""
        if self.halves is None or len(results) < 2:
            return None, None, None
        middle = len(results) // 2
        costs = [
            (sum(each["cost"] for each in part) + judging, sum(e["cost_largest"] for e in part))
            for part, judging in zip((results[:middle], results[middle:]), self.halves, strict=True)
        ]
        whole = sum(cost for cost, _ in costs), sum(largest for _, largest in costs)
        first, second, both = (_times(*each) for each in (*costs, whole))
        return both, first, second


UNKNOWN = Judging()


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The result of a session. Costs are sums in the zoo's unit, exploration calls included, which
    is None where the key is no administrator's; shares are from 0 to 1.

    ``satisfaction`` is the truth, which the demo alone knows; ``verdict`` and the interval around
    it are by the rule of the status. ``satisfaction_reported`` is what the
    proxy makes of the labels, with its interval at 95 %, and ``labelled`` the share of requests
    that have one. ``unrouted`` requests, which LiteLLM served by its own choice, are in no other
    figure. ``times_hindsight_mix`` and ``times_oracle`` are our cost as a multiple of those two,
    which are known only afterwards: None, for a reason in ``hindsight_note``, where they are not.
    ``alone`` is what always calling each model would have come to, as far as that is known.
    """

    alpha: float
    satisfaction: float
    low: float
    high: float
    verdict: Standing
    labels: str
    labelled: float
    satisfaction_reported: float | None
    satisfaction_low: float | None
    satisfaction_high: float | None
    cost: float
    cost_largest: float
    cost_unit: str | None
    cost_hindsight_mix: float | None
    times_hindsight_mix: float | None
    cost_oracle: float | None
    times_oracle: float | None
    hindsight_note: str | None
    alone: dict[str, Alone]
    model_mix: dict[str, float]
    explorations: int
    requests: int
    unrouted: int
    queue: float
    cost_judging: float | None
    times_largest: float | None
    times_largest_first_half: float | None
    times_largest_second_half: float | None

    @classmethod
    def of(
        cls,
        labels: str,
        sent: Sequence[Sent],
        outcomes: Sequence[Outcome],
        reported: Reported,
        unrouted: int,
        yardsticks: Yardsticks,
        judging: Judging = UNKNOWN,
    ) -> "DemoReport":
        """Build the report over the requests of a session, in order; not empty. ``outcomes`` are
        those of ``sent``, and ``labels`` the mode."""
        results = [outcome["outcome"] for outcome in outcomes]
        served = Counter(str(result["served"]) for result in results)
        alpha = outcomes[-1]["alpha"]
        satisfaction = sum(request.satisfied for request in sent) / len(sent)
        interval = wilson(satisfaction, len(sent))
        assert interval is not None, "a session is not empty"
        cost = sum(result["cost"] for result in results)
        times_largest, of_first, of_second = judging.shares(results)
        return cls(
            alpha=alpha,
            satisfaction=satisfaction,
            low=interval.low,
            high=interval.high,
            verdict=standing(interval, alpha),
            labels=labels,
            labelled=sum(result["satisfaction"] is not None for result in results) / len(results),
            satisfaction_reported=reported.rate,
            satisfaction_low=reported.low,
            satisfaction_high=reported.high,
            cost=cost,
            cost_largest=sum(result["cost_largest"] for result in results),
            cost_unit=reported.cost_unit,
            cost_hindsight_mix=yardsticks.hindsight_mix,
            times_hindsight_mix=_times(cost, yardsticks.hindsight_mix),
            cost_oracle=yardsticks.oracle,
            times_oracle=_times(cost, yardsticks.oracle),
            hindsight_note=yardsticks.note,
            alone=dict(yardsticks.alone),
            model_mix={name: count / len(results) for name, count in served.most_common()},
            explorations=sum(outcome["is_exploration"] for outcome in outcomes),
            requests=len(outcomes),
            unrouted=unrouted,
            queue=outcomes[-1]["queue"],
            cost_judging=None if judging.halves is None else sum(judging.halves),
            times_largest=times_largest,
            times_largest_first_half=of_first,
            times_largest_second_half=of_second,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the report for `--json`."""
        return asdict(self)


def table(report: DemoReport) -> Table:
    """Lay the report out for people."""
    shown = Table(title=f"{report.requests} requests through the proxy", show_header=False)
    shown.add_column(justify="left")
    shown.add_column(justify="right")
    shown.add_row("promised: share satisfied (alpha)", percent(report.alpha))
    satisfied = percent_around(report.satisfaction, report.low, report.high)
    shown.add_row(
        f"{report.verdict}: share satisfied", Text(satisfied, style=STYLES[report.verdict])
    )
    shown.add_section()
    shown.add_row(f"labelled (--labels {report.labels})", percent(report.labelled))
    reported = (report.satisfaction_reported, report.satisfaction_low, report.satisfaction_high)
    shown.add_row("satisfied by the labels", percent_around(*reported))
    shown.add_section()
    shown.add_row("cost, explorations included", figure(report.cost, report.cost_unit))
    largest = figure(report.cost_largest, report.cost_unit)
    shown.add_row("cost of always calling the largest", largest)
    shown.add_row("saved", percent(1 - report.cost / report.cost_largest))
    if report.cost_judging and report.times_largest is not None:
        shown.add_row("cost of judging", figure(report.cost_judging, "usd"))
        shown.add_row("saved, judging paid", percent(1 - report.times_largest))
    shown.add_section()
    for row in _yardsticks(report):
        shown.add_row(*row)
    shown.add_section()
    for name, share in report.model_mix.items():
        shown.add_row(f"served by {name}", percent(share))
    if report.unrouted:
        shown.add_row("left to LiteLLM, not counted here", str(report.unrouted))
    shown.add_row("explorations", str(report.explorations))
    shown.add_row("virtual queue at the last decision", figure(report.queue, "requests"))
    return shown


def _yardsticks(report: DemoReport) -> Iterator[tuple[str, str]]:
    """Yield the rows of what is known only afterwards."""
    note = report.hindsight_note
    for name, cost, times in (
        ("hindsight mix", report.cost_hindsight_mix, report.times_hindsight_mix),
        ("oracle", report.cost_oracle, report.times_oracle),
    ):
        known = figure(cost, report.cost_unit)
        yield f"cost of the {name}", note or "not known" if cost is None else known
        if times is not None:
            yield "our cost, as a multiple of it", figure(times)
    if report.cost_hindsight_mix is not None and note is not None:
        yield "in hindsight", note


def _times(cost: float, other: float | None) -> float | None:
    """Divide our cost by another; None where that one costs nothing."""
    return cost / other if other else None
