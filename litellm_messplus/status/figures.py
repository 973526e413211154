"""Each figure that an operator sees, declared once: where it stands in the JSON of the status, what
it means, how it follows from what was read, its gauge, and its row in `messplus status`.

JSON, metrics, the terminal's tables and those of `docs/status.md` (`make docs`) are made from here,
in this order. Shares are from 0 to 1, costs in the zoo's unit. None is unknown, never zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from litellm_messplus.figures.figure import Figure, Plain, Series, part, schema, series
from litellm_messplus.figures.interval import Standing, is_thin, standing
from litellm_messplus.figures.tally import Tally, share
from litellm_messplus.runtime.vocabulary import Failure
from litellm_messplus.status.labels import Given, Grading
from litellm_messplus.status.reading import Key
from litellm_messplus.store.judging import LabelCosts
from litellm_messplus.store.key_activity import KeyStatus
from litellm_messplus.store.model_changes import ModelChange

# What is known of a promise.


@dataclass(frozen=True, slots=True)
class LiveLevel:
    """A service level as its engine sees it now, or as the newest decisions in the log do."""

    queue: float | None
    """In requests."""
    price: float | None = None
    """In the zoo's unit, for one more satisfied request; None is that of the log."""
    is_within_reach: bool | None = None
    """Whether a candidate can hold alpha; None is as the log says."""
    alpha: float | None = None
    """With it the level is shown before its first request."""
    cost_unit: str | None = None
    """`usd` or `joule`; None in the log, which does not know it."""
    least_agreement: float | None = None
    """The kappa below which the zoo's judge stops counting."""
    concern: str | None = None
    """What is wrong with the zoo's candidates."""
    changes: tuple[ModelChange, ...] = ()
    """Which of them have changed."""


LiveLevels = Mapping[Key, LiveLevel]
"""By zoo and service level."""


class Source(StrEnum):
    """The sources of queue and price."""

    ENGINE = "engine"
    NEWEST_REQUEST = "newest request"


@dataclass(frozen=True, slots=True)
class Level:
    """A promise, as it is now."""

    key: Key
    now: LiveLevel
    source: Source
    """Where ``now`` is from."""
    largest: str | None
    """The largest candidate at the newest request."""
    requests_per_hour: float
    """The traffic of the last minutes, however it was served."""
    before: Tally
    """The sums of its newest requests that were served as before."""
    per_hour: float
    """The traffic that is served so."""


# fmt: off
LEVEL: tuple[Figure[Level], ...] = (
    Figure("zoo", "The zoo and service level of the promise.", lambda v: v.key[0]),
    Figure("service_level", of=lambda v: v.key[1]),
    Figure("cost_unit", "`usd` or `joule`; `null` if read from a database.",
           lambda v: v.now.cost_unit),

    # What holds now.
    Figure("source", "Source of the four figures below: the `engine`, or the `newest request`."),
    Figure("alpha", "The share promised now.", lambda v: v.now.alpha, "alpha"),
    Figure("queue", "Requests owed; under `adaptive`, below zero is credit.",
           lambda v: v.now.queue, "queue", "queue", "figure('requests')"),
    Figure("price", "What one more satisfied request may cost.",
           lambda v: v.now.price, "price", "price", "figure(level.cost_unit)"),
    Figure("is_within_reach", "Whether a candidate can hold alpha: by the engine, else by most of "
           "the newest 20 decisions.", lambda v: v.now.is_within_reach),
    Figure("largest", "The largest candidate at the newest request, the baseline of `savings`."),
    Figure("requests_per_hour", "Traffic, however it was served: the rate of the last 5 minutes, "
           "in requests an hour."),

    # What was served as before.
    Figure("as_before", "The newest requests that were [served as before](switching.md), which "
           "count towards no promise; `null` without any.",
           lambda v: {} if v.before.requests else None),
    Figure("as_before.requests", "Their number, and how many arrive per hour now.",
           lambda v: v.before.requests),
    Figure("as_before.requests_per_hour", "", lambda v: v.per_hour),
    Figure("as_before.answered_share", "The answered share of those that ended.",
           lambda v: v.before.answered_share),
    Figure("as_before.judged", "Those with a verdict; their mean satisfaction, its 95 % interval.",
           lambda v: v.before.judged),
    Figure("as_before.rate", "", lambda v: v.before.rate),
    Figure("as_before.low", "", lambda v: v.before.low),
    Figure("as_before.high", "", lambda v: v.before.high),
    Figure("as_before.cost_per_request", "The mean cost of the calls that served; those that no "
           "user saw are left out.", lambda v: v.before.seen_cost_per_request),
)
# fmt: on
"""The figures of a promise."""


@dataclass(frozen=True, slots=True)
class Window(Tally):
    """The sums of all requests of a promise, or of its newest, and what else their figures
    need."""

    now: float = 0.0
    """The current alpha."""
    sources: tuple[Given, ...] = ()
    """The labels of each source, the strongest first."""
    is_failing: bool = False
    """Whether many of the zoo's requests of the last minutes got no answer."""
    is_followed: bool = True
    """Whether they were served as the router left them; else no savings are shown."""

    @property
    def of_judged(self) -> float:
        """The promise that the verdicts are held against; alpha now without any."""
        return self.promised if self.promised is not None and self.judged else self.now

    @property
    def is_thin(self) -> bool:
        """Whether there are too few verdicts to rely on."""
        return is_thin(self.interval, self.effective)

    @property
    def evidence(self) -> str:
        """How much evidence there is, in words."""
        if self.requests == 0:
            return "no requests yet"
        found = f"{self.judged} of {self.requests} requests with a verdict"
        if round(self.effective) < self.judged:
            found += f", worth {self.effective:.0f}"
        if not self.is_thin:
            return found
        interval = self.interval
        width = f", interval {100 * interval.width:.0f} points wide" if interval else ""
        return f"not enough evidence: {found}{width}"

    @property
    def seconds(self) -> tuple[float, float, float]:
        """The mean seconds of predicting, of deciding and of the call, of the timed requests."""
        # Both parts of deciding are measured by one clock, but rounded.
        found = self.predicting_seconds, max(self.deciding_seconds, 0.0), self.call_seconds
        return found[0] / self.timed, found[1] / self.timed, found[2] / self.timed

    def share_of_time(self, place: int) -> float:
        """Return the share of one of the three in their sum."""
        return self.seconds[place] / (sum(self.seconds) or 1.0)


def _of_all_time(name: str) -> str:
    name = f"overhead.{name}"
    return f"{{{{ {name}_seconds | ms }}}}, {{{{ {name}_share | percent(2) }}}} of all time"


# fmt: off
WINDOW: tuple[Figure[Window], ...] = (
    # How many came, how many were answered, and who failed the others.
    Figure("answers.requests", "Requests decided.", gauge="requests"),
    Figure("answers.answered", "Those that got an answer, and their share of those that ended.",
           lambda w: w.succeeded),
    Figure("answers.answered_share", gauge="answered_share"),
    Figure("answers.failed", "[Those that ended without one](control.md#failed-requests), and by "
           "cause.", gauge="failed"),
    *(Figure[Window](f"answers.failed_{each}", gauge=f"failed_{each}") for each in Failure),

    # What was measured, of how many, against what was promised.
    Figure("satisfaction.verdict", "One of [four words](#the-verdict).",
           lambda w: Standing.FAILING if w.is_failing else standing(w.interval, w.of_judged),
           "", "promise (95 %)", "string"),
    Figure("satisfaction.rate", "The weighted mean of the verdicts on the served calls.", None,
           "satisfaction", "satisfied, interval",
           "{{ around(satisfaction.rate, satisfaction.low, satisfaction.high) }}"
           "{% if satisfaction.promised != level.alpha %}"
           ", promised {{ satisfaction.promised | percent }}{% endif %}"),
    Figure("satisfaction.low", "Its 95 % Wilson interval, of `effective` verdicts.",
           gauge="satisfaction_low"),
    Figure("satisfaction.high", gauge="satisfaction_high"),
    Figure("satisfaction.promised", "alpha of the judged requests; if it was changed, the weighted "
           "mean.", lambda w: w.of_judged, "promised"),
    Figure("satisfaction.requests", "Requests, those with a verdict, and their share."),
    Figure("satisfaction.judged", gauge="judged"),
    Figure("satisfaction.judged_share", "", lambda w: share(w.judged, w.requests), "judged_share",
           "judged", "{{ satisfaction.judged }} judged, of {{ answers.answered }} answered, "
           "of {{ answers.requests }} requests"),
    Figure("satisfaction.effective", "How many verdicts of equal weight are as much evidence."),
    Figure("satisfaction.is_thin", "Whether [evidence is thin](#when-evidence-is-thin), and the "
           "same in words."),
    Figure("satisfaction.evidence", row="evidence", text="string"),

    # Where the verdicts are from.
    Figure("labels", "[The labels of each source](#labels-source-by-source).", lambda _: {}),
    Figure("labels.labelled", "Requests with any label, whether it counts or not."),
    Figure("labels.labelled_share", "", lambda w: share(w.labelled, w.requests), "",
           "with any label", "percent"),
    Figure("labels.sources", "The sources, the strongest kind first.",
           lambda w: [part(SOURCE, each) for each in w.sources]),

    # What it cost.
    Figure("cost.total", "What all requests cost, explorations included, as far as known.",
           lambda w: w.cost if w.priced or w.cost > 0.0 else None, "cost"),
    Figure("cost.per_request", "The mean over requests whose served call has a known cost.",
           lambda w: w.cost_per_request, "cost_per_request", "cost per request",
           "{{ cost.per_request | figure(level.cost_unit) }}{% if cost.calls_without_cost %}"
           " ({{ cost.calls_without_cost }} calls of unknown cost){% endif %}"),
    Figure("cost.calls_without_cost", "Successful calls of unknown cost, in no cost above.",
           lambda w: w.unstated),

    # What was tried, and what that cost.
    Figure("exploration.requests", "Requests on which anything but the best was tried.",
           lambda w: w.explorations),
    Figure("exploration.share", "", lambda w: share(w.explorations, w.requests),
           "exploration_share", "explored", "{{ exploration.share | percent }} of requests, "
           "{{ exploration.cost_share | percent }} of cost"),
    Figure("exploration.cost", "Cost of calls that no user saw, and its share of all cost.",
           lambda w: float(w.exploration_cost)),
    Figure("exploration.cost_share", "", lambda w: share(w.exploration_cost, w.cost),
           "exploration_cost_share"),

    # What it saved against always calling the largest.
    Figure("savings", "How much less answered requests cost than the largest alone, by its own "
           "cost, else its price of the tokens that were used; calls that no user saw and judging "
           "are subtracted.", lambda w: {} if w.compared and w.is_followed else None),
    Figure("savings.requests", "The compared requests, and what the largest would have cost.",
           lambda w: w.compared),
    Figure("savings.cost_largest", "", lambda w: w.compared_cost_largest),
    Figure("savings.routing_saved", "What serving saved, before labels are subtracted."),
    Figure("savings.label_cost", "What labels cost: calls that no user saw, and judging."),
    Figure("savings.saved", "What was saved, and its share of what the largest would have cost."),
    Figure("savings.saved_share", "", None, "saved_share",
           "saved against {{ level.largest or 'the largest model' }}", "percent"),

    # What routing adds to the time of a request.
    Figure("overhead", "[Time before the call](#the-overhead), next to that of the call.",
           lambda w: {} if w.timed else None),
    Figure("overhead.requests", "Requests included, and those whose features came too late.",
           lambda w: w.timed),
    Figure("overhead.late"),
    Figure("overhead.predicting_seconds", "Reading the prompt, waiting for a batch included; the "
           "share is of all three times.", lambda w: w.seconds[0], "",
           "predicting", _of_all_time("predicting")),
    Figure("overhead.predicting_share", "", lambda w: w.share_of_time(0)),
    Figure("overhead.deciding_seconds", "The rest before the call.", lambda w: w.seconds[1],
           "", "deciding", _of_all_time("deciding")),
    Figure("overhead.deciding_share", "", lambda w: w.share_of_time(1)),
    Figure("overhead.call_seconds", "The served call.", lambda w: w.seconds[2],
           "", "the call", _of_all_time("call")),
    Figure("overhead.call_share", "", lambda w: w.share_of_time(2)),
)
# fmt: on
"""The figures of a window: of all requests of a promise, and of its newest ones."""

# fmt: off
SOURCE: tuple[Figure[Given], ...] = (
    Figure("kind", "`feedback`, `judge`, or a check by its own name."),
    Figure("source"),
    Figure("labelled", "Those it labelled."),
    Figure("counting", "How many of these are their request's verdict."),
    Figure("rate", "The mean of its newest labels, and its 95 % Wilson interval."),
    Figure("low", "", lambda g: g.interval.low),
    Figure("high", "", lambda g: g.interval.high),
    Figure("is_thin", "Whether evidence is thin from its labels alone.",
           lambda g: is_thin(g.interval, g.labelled)),
)
# fmt: on
"""The figures of a source of labels, in a window."""

# fmt: off
JUDGE: tuple[Figure[Grading], ...] = (
    Figure("zoo", "The zoo, and the model group that graded its answers."),
    Figure("judge"),

    # What it did, and what that cost.
    Figure("gradings", "Gradings requested of it, and those with a valid reply.", None,
           "", "gradings", "{{ gradings }}, {{ graded }} of them graded"),
    Figure("graded"),
    Figure("cost", "In dollars, as far as known; and the gradings of unknown cost.", None,
           "", "cost",
           "{{ cost | figure('usd') }}{% if cost is not none %}, in no cost above{% endif %}"
           "{% if gradings_without_cost %} ({{ gradings_without_cost }} of unknown cost)"
           "{% endif %}"),
    Figure("gradings_without_cost", "", lambda g: g.without_cost),

    # How far it can be trusted.
    Figure("note", "Whether its labels count, in words.", row="labels", text="string"),
    Figure("kappa", "Cohen's kappa and its interval of 95 %: 1 is perfect agreement, 0 what chance "
           "gives.", lambda g: g.agreement.kappa, "judge_kappa", "agreement with users (kappa)",
           "{{ '%.2f (%.2f to %.2f)' % (kappa, kappa_low, kappa_high) if kappa is not none }}"),
    Figure("kappa_low", "", lambda g: g.agreement.interval[0] if g.agreement.calls else None),
    Figure("kappa_high", "", lambda g: g.agreement.interval[1] if g.agreement.calls else None),
    Figure("both_satisfied", "The newest 1,000 calls that users judged too, by both verdicts.",
           lambda g: g.agreement.both_satisfied, "", "on calls that both judged",
           "both satisfied {{ both_satisfied }}, neither {{ neither }}, only the judge "
           "{{ only_judge_satisfied }}, only the user {{ only_user_satisfied }}"),
    Figure("only_judge_satisfied", "", lambda g: g.agreement.only_judge_satisfied),
    Figure("only_user_satisfied", "", lambda g: g.agreement.only_user_satisfied),
    Figure("neither", "", lambda g: g.agreement.neither),
    Figure("position_bias", "How much more often it preferred the answer shown first, from -1 to "
           "1.", lambda g: g.position.share),
    Figure("counts", "Whether its labels count; `null` before the first."),
)
# fmt: on
"""The figures of a judge; `zoo`, `judge` and `note` are known beside its gradings."""

# fmt: off
LABEL_COSTS: tuple[Figure[LabelCosts], ...] = (
    Figure("zoo", "The zoo of the labels."),
    Figure("saved", "Saved against always calling the largest: the sum of `savings.saved` of its "
           "promises.", None, "labels_saved", "saved"),
    Figure("unseen", "The cost, in the zoo's unit, of calls made to be labelled, which no user "
           "saw.", None, "labels_unseen_cost", "unseen calls"),
    Figure("judging", "What the judge cost, in dollars.", None, "labels_judging_dollars", "judging",
           "figure('usd')"),
    Figure("unseen_today", "Both of today (UTC).", row="unseen today"),
    Figure("judging_today", row="judging today", text="figure('usd')"),
)
# fmt: on
"""What the labels of a zoo cost; `zoo` is known beside the costs."""

# fmt: off
KEY: tuple[Figure[KeyStatus], ...] = (
    Figure("zoo", "The key, its zoo and level; `key_hash` is LiteLLM's hash, `null` without a "
           "key."),
    Figure("service_level"),
    Figure("key_hash"),
    Figure("requests", "Its requests of the last day.", row="requests"),
    Figure("verdicts", "Its labels, on any request.", row="labels"),
    Figure("counting", "Those that count.", row="counting"),
    Figure("unsatisfied", "The unsatisfied share of these.", row="unsatisfied", text="percent"),
    Figure("held", "Those kept with weight 0.", row="held back"),
)
# fmt: on
"""The figures of a key, in the last day."""


def _list(items: Plain) -> Plain:
    return {"type": "array", "items": items}


SCHEMA = schema(
    (),
    levels=_list(schema(LEVEL, overall=schema(WINDOW), last=schema(WINDOW))),
    judges=_list(schema(JUDGE)),
    label_costs=_list(schema(LABEL_COSTS)),
    keys=_list(schema(KEY)),
)
"""The JSON schema of the status, as far as its figures are declared here."""

# The status as gauges: one number per series, for any exporter of metrics.

OVERALL = tuple(
    each._replace(gauge=f"overall_{each.gauge}")
    for each in WINDOW
    if each.gauge in ("requests", "failed", "judged", "satisfaction", "cost", "saved_share")
)
"""The figures of a window whose gauges are also of the whole time."""
MEANINGS = {
    f"messplus_{each.gauge}": place.format(each.path)
    for group, place in (
        (LEVEL, "`levels.{}`"),
        (WINDOW, "`levels.last.{}`"),
        (OVERALL, "`levels.overall.{}`"),
        (JUDGE, "`judges.{}`, of the `model` that judges."),
        (LABEL_COSTS, "`label_costs.{}`"),
    )
    for each in group
    if each.gauge
} | {"messplus_alert": "1 for each alert, by its `kind`."}
"""The description of each gauge."""


def gauges(status: Plain) -> dict[Series, float]:
    """Return every known figure of a status; an unknown one has no gauge, rather than zero."""
    found: dict[Series, float] = {}
    for level in status["levels"]:
        labels = {"zoo": level["zoo"], "level": level["service_level"]}
        found |= series(LEVEL, level, **labels)
        found |= series(WINDOW, level["last"], **labels)
        found |= series(OVERALL, level["overall"], **labels)
    for judge in status["judges"]:
        found |= series(JUDGE, judge, zoo=judge["zoo"], model=judge["judge"])
    for costs in status["label_costs"]:
        found |= series(LABEL_COSTS, costs, zoo=costs["zoo"])
    for alert in status["alerts"]:
        zoo, level = (alert[name] or "" for name in ("zoo", "service_level"))
        found[Series.of("messplus_alert", kind=alert["kind"], zoo=zoo, level=level)] = 1.0
    return found


def live_gauges(live: LiveLevels) -> dict[Series, float]:
    """Return the figures of promises that a worker knows without the log."""
    found: dict[Series, float] = {}
    for (zoo, name), now in live.items():
        level = Level((zoo, name), now, Source.ENGINE, None, 0.0, Tally(), 0.0)
        found |= series(LEVEL, part(LEVEL, level), zoo=zoo, level=name)
    return found
