"""The status as data: what the command prints and the route answers, one meaning for both.

Shares are from 0 to 1, costs in the zoo's unit. None is "unknown", never zero. What each figure
means is declared in `figures/shown.py`."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter

from litellm_messplus.figures.interval import Standing
from litellm_messplus.figures.shown import LABEL_COSTS, LEVEL, WINDOW, described
from litellm_messplus.runtime.counters import UNROUTED
from litellm_messplus.runtime.vocabulary import Failure
from litellm_messplus.status.calibration import ZooCalibration
from litellm_messplus.status.labels import JudgeStatus, Labels
from litellm_messplus.status.newest import ConversationStatus, KeyIncidents
from litellm_messplus.status.switches import SwitchStatus
from litellm_messplus.store.history import CandidateStatus
from litellm_messplus.store.key_activity import KeyStatus
from litellm_messplus.store.model_changes import ModelChange

# What needs attention.


class AlertKind(StrEnum):
    """The kinds of alert, by their names in JSON and in the metrics."""

    SERVED_NOT_CHOSEN = "served_not_chosen"
    FAILING = "failing"
    OUT_OF_REACH = "out_of_reach"
    BELOW = "below"
    NO_FEEDBACK = "no_feedback"
    THIN_EVIDENCE = "thin_evidence"
    JUDGE_STOPPED = "judge_stopped"
    KEY_HELD = "key_held"
    CANDIDATES = "candidates"
    RETURNED = "returned"
    JOURNAL = "journal"
    GATES = "gates"
    UNSHARED = "unshared"
    HIDDEN = "hidden"
    LATE_STATE = "late_state"
    MODEL_CHANGED = "model_changed"


AlertKey = tuple[AlertKind, str | None, str | None, str | None]
"""The kind of an alert, its zoo, service level and candidate."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing that is wrong; ``service_level`` is None if it is about a zoo, and ``zoo`` too if
    it is about all; ``candidate`` is set if it is about one."""

    kind: AlertKind
    message: str
    zoo: str | None = None
    service_level: str | None = None
    candidate: str | None = None

    @property
    def key(self) -> AlertKey:
        """The fields that make it the same alert, though the numbers in its message change."""
        return self.kind, self.zoo, self.service_level, self.candidate

    @property
    def subject(self) -> str:
        """The zoo and service level that it is about, for people."""
        if self.zoo is None:
            return "messplus"
        return self.zoo if self.service_level is None else f"{self.zoo}/{self.service_level}"


# What the running proxy knows beyond the log.


@dataclass(frozen=True, slots=True)
class LiveLevel:
    """A service level as its engine sees it now.

    ``queue`` is in requests; ``price`` in the zoo's unit for one more satisfied request. With
    ``price`` or ``is_within_reach`` None, they are those of the newest decisions in the log. With
    ``alpha``, the level is shown before its first request. ``least_agreement`` is the kappa below
    which the zoo's judge stops counting; ``concern`` is what is wrong with the zoo's candidates,
    and ``changes`` which of them have changed.
    """

    queue: float
    price: float | None = None
    is_within_reach: bool | None = None
    alpha: float | None = None
    cost_unit: str | None = None
    least_agreement: float | None = None
    concern: str | None = None
    changes: tuple[ModelChange, ...] = ()


LiveLevels = Mapping[tuple[str, str], LiveLevel]
"""By zoo and service level."""


class Source(StrEnum):
    """The sources of queue and price."""

    ENGINE = "engine"
    NEWEST_REQUEST = "newest request"


@described(WINDOW, "answers.")
@dataclass(frozen=True, slots=True)
class Answers:
    """Requests that were answered, and those that failed, by cause."""

    requests: int
    answered: int
    answered_share: float | None
    failed: int
    failed_upstream: int
    failed_no_deployment: int
    failed_deadline: int
    failed_client_gone: int
    failed_refused: int
    failed_unknown: int


@described(WINDOW, "satisfaction.")
@dataclass(frozen=True, slots=True)
class Satisfaction:
    """The share satisfied of the requests with a verdict, against what they were promised."""

    requests: int
    judged: int
    judged_share: float | None
    effective: float
    promised: float
    rate: float | None
    low: float | None
    high: float | None
    verdict: Standing
    is_thin: bool
    evidence: str

    @property
    def is_below(self) -> bool:
        """Whether all of the interval is below what was promised."""
        return self.high is not None and self.high < self.promised


@described(WINDOW, "cost.")
@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of the requests, explorations included."""

    total: float | None
    per_request: float | None
    calls_without_cost: int


@described(WINDOW, "exploration.")
@dataclass(frozen=True, slots=True)
class Exploration:
    """Requests on which anything but the best choice was tried, and the extra cost."""

    requests: int
    share: float | None
    cost: float
    cost_share: float | None


@dataclass(frozen=True, slots=True)
class Savings:
    """The savings against always calling the largest, of the answered ``requests`` for which both
    costs are known: what serving them saved, and that less the cost of labels, which is of judging
    and of calls that no user saw."""

    requests: int
    cost_largest: float
    routing_saved: float
    label_cost: float
    saved: float
    saved_share: float | None


@described(WINDOW, "overhead.")
@dataclass(frozen=True, slots=True)
class Overhead:
    """Mean seconds of a request, over those whose served call took a known time."""

    requests: int
    late: int
    predicting_seconds: float
    deciding_seconds: float
    call_seconds: float
    predicting_share: float
    deciding_share: float
    call_share: float


@dataclass(frozen=True, slots=True)
class WindowStatus:
    """The status of a number of requests: all of a service level, or the newest."""

    answers: Answers
    satisfaction: Satisfaction
    labels: Labels
    cost: Cost
    exploration: Exploration
    savings: Savings | None
    overhead: Overhead | None

    @property
    def denominators(self) -> str:
        """The judged, of which answered requests, of how many requests."""
        of, found = self.answers, self.satisfaction
        judged = f"{found.judged} judged"
        return f"{judged}, of {of.answered} answered, of {of.requests} requests"

    @property
    def failures_in_words(self) -> str:
        """The failed requests, by who failed them."""
        of = self.answers
        by = ", ".join(
            f"{each.value.replace('_', ' ')} {count}"
            for each in Failure
            if (count := getattr(of, f"failed_{each.value}"))
        )
        return f"{of.failed} ({by})" if by else str(of.failed)


@described(LEVEL, "as_before.")
@dataclass(frozen=True, slots=True)
class AsBefore:
    """The newest requests of a service level that were served as before."""

    requests: int
    requests_per_hour: float
    answered_share: float | None
    judged: int
    rate: float | None
    low: float | None
    high: float | None
    cost_per_request: float | None


@described(LEVEL)
@dataclass(frozen=True, slots=True)
class LevelStatus:
    """One promise of one zoo."""

    zoo: str
    service_level: str
    alpha: float
    cost_unit: str | None
    source: Source
    queue: float | None
    price: float | None
    is_within_reach: bool
    overall: WindowStatus
    last: WindowStatus
    largest: str | None = None
    requests_per_hour: float = 0.0
    as_before: AsBefore | None = None

    @property
    def baseline(self) -> str:
        """The name of what savings are measured against."""
        return self.largest or "the largest model"


@described(LABEL_COSTS)
@dataclass(frozen=True, slots=True)
class LabelCostStatus:
    """The cost of a zoo's labels, and what it saved, in total and today (UTC)."""

    zoo: str
    unseen: float
    judging: float
    saved: float
    unseen_today: float
    judging_today: float


@dataclass(frozen=True, slots=True)
class Unrouted:
    """The number of answers that a zoo's models gave to calls of a type that is not routed, since
    the oldest running worker began."""

    zoo: str
    call_type: str
    answers: int


def unrouted_of(counts: Mapping[str, float]) -> tuple[Unrouted, ...]:
    """Read them from the counts of all workers."""
    names = sorted(name for name in counts if name.startswith(UNROUTED) and counts[name])
    found = [(name.removeprefix(UNROUTED).rpartition("."), int(counts[name])) for name in names]
    return tuple(Unrouted(zoo, call_type, count) for (zoo, _, call_type), count in found)


@dataclass(frozen=True, slots=True)
class Status:
    """Everything; ``window`` is how many requests `last` covers. ``calibration`` is of the zoos
    with a judged call, ``judges`` are those that have graded, ``keys`` those that judge most;
    ``label_costs`` are of every zoo with a request; ``candidates`` are those that joined, changed
    their price or left, the newest first; ``switches`` are of each zoo whose mode was ever set,
    ``conversations`` of each promise that has some, ``incidents`` of the keys that cause most,
    ``model_changes`` those found in the last day, and ``unrouted`` what passed the routing by."""

    window: int
    levels: tuple[LevelStatus, ...]
    alerts: tuple[Alert, ...]
    calibration: tuple[ZooCalibration, ...]
    judges: tuple[JudgeStatus, ...]
    keys: tuple[KeyStatus, ...]
    label_costs: tuple[LabelCostStatus, ...] = ()
    candidates: tuple[CandidateStatus, ...] = ()
    switches: tuple[SwitchStatus, ...] = ()
    conversations: tuple[ConversationStatus, ...] = ()
    incidents: tuple[KeyIncidents, ...] = ()
    model_changes: tuple[ModelChange, ...] = ()
    unrouted: tuple[Unrouted, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON: plain dictionaries, lists, text and numbers."""
        plain: dict[str, Any] = _ADAPTER.dump_python(self, mode="json")
        return plain

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Status":
        """Rebuild what ``as_dict`` gave. Raises pydantic.ValidationError where it is something
        else."""
        return _ADAPTER.validate_python(plain)


_ADAPTER: TypeAdapter[Status] = TypeAdapter(Status)
