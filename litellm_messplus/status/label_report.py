"""The shape of what the status says of labels: source by source, and of the judge."""

from dataclasses import dataclass

from litellm_messplus.label_kind import LabelKind


@dataclass(frozen=True, slots=True)
class SourceRate:
    """What one source says of the requests that it labelled.

    ``rate`` is the mean of its labels with Wilson's interval of 95 %; ``counting`` is how many of
    them count as the verdict of their request.
    """

    kind: LabelKind
    source: str
    labelled: int
    rate: float
    low: float
    high: float
    counting: int
    is_thin: bool


@dataclass(frozen=True, slots=True)
class Labels:
    """Requests with a label of any source, whether it counts or not; and each source that has given
    one, the strongest kind first."""

    labelled: int
    labelled_share: float | None
    sources: tuple[SourceRate, ...]


@dataclass(frozen=True, slots=True)
class ResponseBias:
    """How many times as often unsatisfied users answer as satisfied ones, with its interval of
    95 %, from ``graded`` requests that the judge graded, ``answered`` of them with feedback too.

    ``feedback_rate`` is the mean of the feedback as it was given, ``corrected_rate`` what it would
    be if all had answered; both over the whole time. With ``is_corrected`` false the judge's own
    errors are still in ``ratio``.
    """

    graded: int
    answered: int
    ratio: float
    low: float
    high: float
    is_corrected: bool
    is_thin: bool
    feedback_rate: float | None
    corrected_rate: float | None


@dataclass(frozen=True, slots=True)
class JudgeStatus:
    """A model group that grades for a zoo. ``cost`` is in dollars and in no cost of the zoo.

    Of the calls that users judged too, the four counts are what both said; ``kappa`` is Cohen's
    with its interval of 95 %. ``counts`` is None before its first label.
    """

    zoo: str
    judge: str
    gradings: int
    graded: int
    cost: float | None
    gradings_without_cost: int
    both_satisfied: int
    only_judge_satisfied: int
    only_user_satisfied: int
    neither: int
    kappa: float | None
    kappa_low: float | None
    kappa_high: float | None
    counts: bool | None
    note: str
