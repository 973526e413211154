"""Sums over any number of requests. Each is declared once, as an expression that Python evaluates
on an outcome and SQL on the columns of a table; the table `hours` has these columns. Figures
derived from sums are properties."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from math import prod
from typing import Any, Self, TypeVar

from sqlalchemy import FromClause, Integer, and_, case, func, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from litellm_messplus.figures.interval import Interval, effective, wilson
from litellm_messplus.runtime.vocabulary import CallStatus, Failure

T = TypeVar("T")

# A figure, declared once for Python and SQL.

ONE, NONE = literal_column("1", Integer), literal_column("0", Integer)


@dataclass(frozen=True, slots=True)
class Figure:
    """A sum of the product of ``value``, or of 1, over the outcomes in which all of ``known`` are
    known, none of ``unknown`` is, and each of ``only`` has its value. ``comment`` describes it."""

    comment: str
    value: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    only: tuple[tuple[str, Any], ...] = ()

    @property
    def python(self) -> str:
        """The Python expression of what one outcome, ``o``, adds."""
        value = " * ".join(f"o.{name}" for name in self.value) or "1"
        conditions = [f"o.{name} is not None" for name in self.known]
        conditions += [f"o.{name} is None" for name in self.unknown]
        conditions += [f"o.{name} == {wanted!r}" for name, wanted in self.only]
        return f"({value} if {' and '.join(conditions)} else 0)" if conditions else value

    def sql(self, columns: Any) -> Any:
        """Return the SQL expression of what one row of outcomes adds."""
        conditions = [columns[name].is_not(None) for name in self.known]
        conditions += [columns[name].is_(None) for name in self.unknown]
        conditions += [columns[name] == value for name, value in self.only]
        value = prod((columns[name] for name in self.value), start=ONE)
        return case((and_(*conditions), value), else_=NONE) if conditions else value


def _sum(comment: str, *value: str, **conditions: Any) -> Any:
    return field(default=0, metadata={"": Figure(comment, value, **conditions)})


def _failed(comment: str, who: Failure) -> Any:
    return _sum(comment, only=(("failure", who.value),))


_WEIGHT = "satisfaction_weight"
_JUDGED = {"known": ("satisfaction",)}
_SUCCESS = (("status", CallStatus.SUCCESS.value),)
_COMPARED = {"known": ("served_cost", "cost_largest"), "only": _SUCCESS}
_PREDICTED = ("seconds", "encode_seconds")
_LATE = {"known": ("seconds",), "unknown": ("encode_seconds",)}
_TIMED = {"known": ("seconds",)}
_PRICED = {"known": ("served_cost",)}
_COSTED = {"known": ("cost",)}

# The sums, and the figures derived from them.


@dataclass(frozen=True, slots=True)
class Tally:
    """The sums over a number of requests, named as in the table `hours`."""

    requests: int = _sum("Requests decided.")
    alphas: float = _sum("Sum of their alphas.", "alpha")
    succeeded: int = _sum("Requests that were answered.", only=_SUCCESS)
    failed: int = _sum(
        "Requests that ended without an answer.", only=(("status", CallStatus.FAILURE.value),)
    )
    failed_upstream: int = _failed(
        "Those of the failed that failed at a model's endpoint.", Failure.UPSTREAM
    )
    failed_no_deployment: int = _failed(
        "Those for which no deployment was left to call.", Failure.NO_DEPLOYMENT
    )
    failed_deadline: int = _failed(
        "Those that took longer than they were allowed to.", Failure.DEADLINE
    )
    failed_client_gone: int = _failed("Those whose client had gone.", Failure.CLIENT_GONE)
    failed_refused: int = _failed(
        "Those that were refused because of the request itself.", Failure.REFUSED
    )
    failed_unknown: int = _failed("Those of which no end was reported.", Failure.UNKNOWN)
    labelled: int = _sum(
        "Requests with a label of any source, whether it counts or not.",
        only=(("is_labelled", True),),
    )
    judged: int = _sum("Requests with a verdict.", **_JUDGED)
    weight: float = _sum("Sum of the verdicts' weights.", _WEIGHT, **_JUDGED)
    weight_squared: float = _sum(
        "Sum of the squares of these weights.", _WEIGHT, _WEIGHT, **_JUDGED
    )
    weighted_satisfaction: float = _sum(
        "Sum of weight times satisfaction.", _WEIGHT, "satisfaction", **_JUDGED
    )
    weighted_alpha: float = _sum("Sum of weight times alpha.", _WEIGHT, "alpha", **_JUDGED)
    cost: float = _sum("What all cost as far as known, explorations included.", "cost", **_COSTED)
    priced: int = _sum("Requests whose served call has a known cost.", **_PRICED)
    priced_cost: float = _sum("What those cost, explorations included.", "cost", **_PRICED)
    explorations: int = _sum(
        "Requests on which anything but the best was tried.", only=(("is_exploration", True),)
    )
    exploration_cost: float = _sum("What the exploration calls cost.", "exploration_cost")
    judging_cost: float = _sum(
        "What judging the answers cost, as far as it is known in the zoo's unit.", "judging_cost"
    )
    compared: int = _sum("Successful requests whose cost and the largest's are known.", **_COMPARED)
    compared_cost: float = _sum("What serving those cost.", "served_cost", **_COMPARED)
    compared_cost_largest: float = _sum(
        "What they would have cost at the largest alone.", "cost_largest", **_COMPARED
    )
    unstated: int = _sum("Successful calls whose cost was unknown at their end.", "unstated")
    timed: int = _sum("Requests whose served call has ended after a known time.", **_TIMED)
    late: int = _sum("Timed requests whose features came too late.", **_LATE)
    predicting_seconds: float = _sum(
        "Seconds that the timed requests' features took.", "encode_seconds", known=_PREDICTED
    )
    deciding_seconds: float = _sum("Seconds of the rest of deciding.", "deciding_seconds", **_TIMED)
    call_seconds: float = _sum("Seconds that their served calls took.", "seconds", **_TIMED)
    queue: float = _sum("Sum of the virtual queue at their decisions.", "queue")

    @classmethod
    def of(cls, outcomes: Iterable[Any]) -> Self:
        """Add outcomes up."""
        return cls(*map(sum, zip(*map(amounts, outcomes), strict=True)))

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, name) + getattr(other, name) for name in FIGURES))

    @property
    def answered_share(self) -> float | None:
        """The share answered of the requests that ended; None if none did."""
        return share(self.succeeded, self.succeeded + self.failed)

    @property
    def rate(self) -> float | None:
        """The weighted mean satisfaction of the judged requests; None without any."""
        return share(self.weighted_satisfaction, self.weight)

    @property
    def alpha(self) -> float | None:
        """The mean alpha of all requests; exactly their alpha if all have the same."""
        found = share(self.alphas, self.requests)
        return None if found is None else round(found, 12)

    @property
    def promised(self) -> float | None:
        """The weighted mean alpha of the judged requests; of all requests if none is judged."""
        found = share(self.weighted_alpha, self.weight)
        return self.alpha if found is None else round(found, 12)

    @property
    def effective(self) -> float:
        """The effective number of verdicts of equal weight; 0 without any."""
        return effective(self.weight, self.weight_squared)

    @property
    def interval(self) -> Interval | None:
        """The interval of ``rate`` at 95 %; None without verdicts."""
        return interval_of(self.rate, self.effective)

    @property
    def low(self) -> float | None:
        """The lower end of that interval; None without verdicts."""
        return None if self.interval is None else self.interval.low

    @property
    def high(self) -> float | None:
        """The upper end; None without verdicts."""
        return None if self.interval is None else self.interval.high

    @property
    def cost_per_request(self) -> float | None:
        """The mean cost of the priced requests; None without any."""
        return share(self.priced_cost, self.priced)

    @property
    def seen_cost_per_request(self) -> float | None:
        """The same without the calls that no user saw; None without priced requests."""
        return share(max(self.priced_cost - self.exploration_cost, 0.0), self.priced)

    @property
    def label_cost(self) -> float:
        """The cost of what is known of answers: all calls that no user saw, and all judging."""
        return self.exploration_cost + self.judging_cost

    @property
    def paid(self) -> float:
        """The cost compared with the largest's: of serving the compared requests, and of labels."""
        return self.compared_cost + self.label_cost

    @property
    def routing_saved(self) -> float:
        """The cost by which serving the compared requests is less than the largest alone."""
        return self.compared_cost_largest - self.compared_cost

    @property
    def saved(self) -> float:
        """The same less the cost of labels."""
        return self.routing_saved - self.label_cost

    @property
    def saved_share(self) -> float | None:
        """The saved share of the largest's cost; None if that is 0."""
        return share(self.saved, self.compared_cost_largest)


FIGURES: Mapping[str, Figure] = {each.name: each.metadata[""] for each in fields(Tally)}
"""Every sum by its name, in the order of the columns."""
COUNTS = frozenset(each.name for each in fields(Tally) if each.type is int)
"""Names of the sums that are whole numbers."""


_EXPRESSIONS = ", ".join(figure.python for figure in FIGURES.values())
amounts: Callable[[Any], tuple[float, ...]] = eval(f"lambda o: ({_EXPRESSIONS})")
"""The amounts that one outcome adds to each figure, in their order."""


def share(part: float, whole: float) -> float | None:
    """Divide a part by the whole; None if the whole is 0."""
    return part / whole if whole else None


def interval_of(rate: float | None, count: float) -> Interval | None:
    """Compute the interval around a mean of sums; None without verdicts."""
    return None if rate is None else wilson(min(max(rate, 0.0), 1.0), count)


def taken(kind: type[T], found: Any, **others: Any) -> T:
    """Build a part of the status from the figures of the same names, and the ``others``."""
    names = (each.name for each in fields(kind))  # type: ignore[arg-type]
    return kind(**{n: others[n] if n in others else getattr(found, n) for n in names})


# Reading sums: one pass over outcomes, or over sums of them.

Group = tuple[Any, ...]
"""The values of the columns that requests are grouped by."""


async def tallies(
    connection: AsyncConnection, *by: str, source: FromClause, where: Any = None
) -> dict[Group, Tally]:
    """Add up the rows of ``source``, a table of outcomes or of sums, by the columns named."""
    keys = [source.c[name] for name in by]
    query = select(*keys, *sums_of(source)).group_by(*keys)
    if where is not None:
        query = query.where(where)
    rows = await connection.execute(query)
    return {tuple(row[: len(by)]): Tally(*row[len(by) :]) for row in rows if row[len(by)]}


def sums_of(source: FromClause) -> list[Any]:
    """Return all sums over rows of outcomes, or of sums."""
    columns = source.c
    each = [columns[name] for name in FIGURES] if "requests" in columns else amounts_of(source)
    return [func.coalesce(func.sum(one), 0).label(one.name) for one in each]


def amounts_of(outcomes: FromClause) -> list[Any]:
    """Return what each row of outcomes adds to each figure."""
    return [figure.sql(outcomes.c).label(name) for name, figure in FIGURES.items()]
