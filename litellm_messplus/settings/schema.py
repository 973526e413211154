"""Every setting, its default and what is allowed. Unknown keys are refused."""

from typing import Annotated

from pydantic import Field, model_validator

from litellm_messplus.costs.price import CostUnit
from litellm_messplus.settings.labels import (
    Alpha,
    LabelsSettings,
    NotNegative,
    Positive,
    Settings,
    Share,
)
from litellm_messplus.settings.policies import (
    PolicyName,
    PolicyPromise,
    PolicySettings,
    read_by_others,
)
from litellm_messplus.settings.serving import (
    AlertsSettings,
    CanaryShare,
    ConversationsSettings,
    ElectricitySettings,
    HoldMode,
    Holdout,
    ModeName,
    TeamModels,
    Unit,
    WatchSettings,
)
from litellm_messplus.switching.modes import DEFAULT_SHARE, Mode, ZooMode
from litellm_messplus.vocabulary import BEFORE_SUFFIX, LabelKind, is_before

# How long the proxy keeps requests, and what becomes of older ones.


class RetentionSettings(Settings):
    """The age of what leaves the log, once a day; what it taught stays."""

    keep_days: Annotated[int, Field(ge=1)] = Field(
        description="Requests that were decided longer ago are pruned, once a day. They can be "
        "judged no more. What they taught stays."
    )
    archive: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="The folder that their rows go to, as Parquet files. Needs the extra "
        "`parquet`: `pip install 'litellm-messplus[parquet]'`. It is made where it is "
        "not there.",
    )
    drop: bool = Field(
        default=False,
        description="Whether their rows are deleted without an archive. Give exactly one of the "
        "two.",
    )

    @model_validator(mode="after")
    def _rows_go_somewhere(self) -> "RetentionSettings":
        if (self.archive is None) != self.drop:
            raise ValueError("exactly one of `archive: FOLDER` and `drop: true`")
        return self


DEFAULT_LEVEL = "default"
AUDIT = "audit"


class ServiceLevelSettings(PolicyPromise):
    """A named promise. What is left out is taken from its zoo."""

    alpha: Alpha | None = Field(default=None, description="The share promised at this level.")
    judge_rate: Share | None = Field(
        default=None, description="The share of requests that the zoo's judge grades or compares."
    )


class ZooSettings(PolicySettings):
    """The deployments behind one model name of `model_list`. Defaults are the paper's."""

    alpha: Alpha = Field(description="The share of requests that must be satisfied.")
    policy: PolicyName = Field(
        default="adaptive",
        description="How a zoo decides. `adaptive` needs alpha alone. `paper` is Algorithm 1 of "
        "MESS+, exactly.",
    )
    cost_unit: CostUnit = Field(
        default=CostUnit.USD,
        description="The unit of cost: `usd` by LiteLLM's prices, `joule` by the energy that "
        "`model_info.messplus` states.",
    )
    electricity: ElectricitySettings | None = Field(
        default=None,
        description="What turns joules into dollars, and back: see dollars and joules.",
    )
    largest: str | None = Field(
        default=None,
        description="The candidate whose answer the user gets when all are called, and against "
        "which savings are stated.",
    )
    gates: bool = Field(
        default=True,
        description="Whether the models that cannot take a request are ranked last: its images, "
        "its tools, its length, its region, its tags.",
    )
    conversations: ConversationsSettings = Field(
        default_factory=ConversationsSettings,
        description="Whether a conversation stays with the model that serves it.",
    )
    teams: TeamModels = Field(
        default=TeamModels.PASS,
        description="What becomes of models that a team has of its own under the zoo's name. "
        "`pass`: its requests are left to LiteLLM, and counted as `team_requests`. `include`: they "
        "are candidates too.",
    )
    mode: ModeName = Field(
        default=Mode.ON,
        description="How far the router has taken over: `watch` serves as before and decides "
        "aside, `canary` routes a share of the conversations, `on` routes all.",
    )
    share: CanaryShare = Field(
        default=DEFAULT_SHARE,
        description="Under `canary`: the share of conversations that is routed.",
    )
    before: str | None = Field(
        default=None,
        description="What served before, and serves what is not routed: `litellm` for LiteLLM's "
        "own choice, a candidate, or `group:` and the `model_name` of a member, where the zoo is a "
        "routing group. Without it there is no way back.",
    )
    holdout: Holdout = Field(
        default=0.0,
        description="Under `on`: the share of conversations that are served as before all the "
        "same, so that the way back has something to compare errors and latency with.",
    )
    watch: WatchSettings = Field(
        default_factory=WatchSettings,
        description="What is called unseen of the requests that are served as before.",
    )
    labels: LabelsSettings = Field(
        default_factory=LabelsSettings,
        description="Where labels come from beside the users' feedback, and whose word counts.",
    )
    service_levels: dict[str, ServiceLevelSettings] = Field(
        default_factory=dict,
        description="Further promises, by the name that the metadata of a key or team gives. Each "
        "has its own virtual queue and its own count of requests. All share what the "
        "zoo has learned.",
    )

    @model_validator(mode="after")
    def _every_setting_is_read(self) -> "ZooSettings":
        levels = [level.model_fields_set for level in self.service_levels.values()]
        unread = read_by_others(self.policy, self.model_fields_set.union(*levels))
        if unread:
            names, readers = " and ".join(unread), " or ".join(dict.fromkeys(unread.values()))
            raise ValueError(f"without {names}, which only `policy: {readers}` reads")
        return self

    @model_validator(mode="after")
    def _what_counts_as_unsatisfied_counts(self) -> "ZooSettings":
        counting = "count" in (self.failures, *(x.failures for x in self.service_levels.values()))
        if counting and LabelKind.CHECK not in self.labels.precedence:
            raise ValueError(
                "`check` in `labels.precedence` beside `failures: count`: the label of a request "
                "that failed is one of checks"
            )
        return self

    @model_validator(mode="after")
    def _the_aim_is_raised_by_one(self) -> "ZooSettings":
        both = [
            level.name
            for level in map(self.level, (DEFAULT_LEVEL, *self.service_levels))
            if level.margin > 0.0 and level.confidence is not None
        ]
        if both:
            raise ValueError(
                f"`margin` or `confidence`, not both: each raises the aim (here of '{both[0]}')"
            )
        return self

    @model_validator(mode="after")
    def _the_paper_decides_every_request(self) -> "ZooSettings":
        given = self.conversations.hold
        if self.policy == "paper" and given not in (None, "never"):
            raise ValueError(
                f"without `conversations.hold: {given}`, which only `policy: adaptive` reads: "
                "`policy: paper` decides every request"
            )
        return self

    @model_validator(mode="after")
    def _conversations_are_known_where_they_count(self) -> "ZooSettings":
        if not self.counts_conversations:
            return self
        if self.policy == "paper":
            raise ValueError(
                "without `conversations.unit: conversation`, which only `policy: adaptive` reads: "
                "`policy: paper` counts requests"
            )
        if self.hold == "never":
            raise ValueError(
                "`conversations.hold: tool_loop` or `warm` beside `conversations.unit: "
                "conversation`: with `never`, nobody knows which requests belong together"
            )
        given = [name for name in ("parity", "auto") if getattr(self.labels, name) is not None]
        if given:
            raise ValueError(
                f"without labels.{given[0]} beside `conversations.unit: conversation`: it buys "
                "labels of single answers, which say nothing of a whole conversation"
            )
        return self

    @model_validator(mode="after")
    def _an_audit_has_a_judge(self) -> "ZooSettings":
        if self.response_bias == AUDIT and self.labels.judge is None:
            raise ValueError("`labels.judge` beside `response_bias: audit`: it makes the audit")
        return self

    @model_validator(mode="after")
    def _labels_can_be_bought(self) -> "ZooSettings":
        labels = self.labels
        given = [name for name in ("parity", "auto") if getattr(labels, name) is not None]
        if given and self.policy == "paper":
            raise ValueError(f"without labels.{given[0]}, which only `policy: adaptive` reads")
        if labels.auto and self.cost_unit is CostUnit.JOULE and self.electricity is None:
            raise ValueError(
                "`electricity` beside `labels.auto` in a zoo of joules: what labels may cost is a "
                "share of what is saved, and judges are paid in dollars"
            )
        return self

    @model_validator(mode="after")
    def _carbon_is_of_joules(self) -> "ZooSettings":
        stated = self.electricity is not None and self.electricity.carbon_per_kwh is not None
        if stated and self.cost_unit is not CostUnit.JOULE:
            raise ValueError("without carbon_per_kwh, which only `cost_unit: joule` reads")
        return self

    @model_validator(mode="after")
    def _default_is_the_zoo_itself(self) -> "ZooSettings":
        if DEFAULT_LEVEL in self.service_levels:
            raise ValueError(
                f"the service level '{DEFAULT_LEVEL}' is the zoo's own alpha, V and c: set it there"
            )
        return self

    @property
    def hold(self) -> HoldMode:
        """Tell when its conversations are held: `warm`, unless otherwise said, or by `paper`."""
        return self.conversations.hold or ("never" if self.policy == "paper" else "warm")

    @property
    def counts_conversations(self) -> bool:
        """Tell whether alpha is a share of its conversations, and not of its requests."""
        return self.conversations.unit is Unit.CONVERSATION

    @model_validator(mode="after")
    def _what_is_held_out_is_served(self) -> "ZooSettings":
        if self.holdout > 0.0 and self.before is None:
            raise ValueError(
                "`before` beside `holdout`: what serves the conversations that are held out"
            )
        return self

    @model_validator(mode="after")
    def _levels_are_told_from_streams(self) -> "ZooSettings":
        taken = [name for name in self.service_levels if is_before(name)]
        if taken:
            raise ValueError(
                f"service levels whose names do not end in '{BEFORE_SUFFIX}', as '{taken[0]}' does"
            )
        return self

    @property
    def zoo_mode(self) -> ZooMode:
        """The mode as the file has it; what was changed since is in the database."""
        return ZooMode(self.mode, self.share, self.before, holdout=self.holdout)

    def of_dollars(self, dollars: float) -> float | None:
        """Convert dollars into the unit of cost; None where no price of electricity is stated."""
        if self.cost_unit is CostUnit.USD:
            return dollars
        return None if self.electricity is None else dollars / self.electricity.dollars_per_joule

    def level(self, name: str) -> "ServiceLevel":
        """Return the promise of that name, with what it leaves out taken from the zoo.

        Raises KeyError for a name that is not configured.
        """
        own = ServiceLevelSettings() if name == DEFAULT_LEVEL else self.service_levels[name]
        read = {each: getattr(self, each) for each in PolicySettings.model_fields}
        apart = {each: getattr(own, each) for each in PolicyPromise.model_fields}
        return ServiceLevel(
            name=name,
            alpha=self.alpha if own.alpha is None else own.alpha,
            judge_rate=self._judge_rate(own),
            **{**read, **{each: value for each, value in apart.items() if value is not None}},
        )

    def _judge_rate(self, own: ServiceLevelSettings) -> float:
        judge = self.labels.judge or self.labels.parity
        if judge is None:
            return 0.0
        return judge.rate if own.judge_rate is None else own.judge_rate


class ServiceLevel(PolicySettings):
    """A promise with every value filled in."""

    name: str
    alpha: Alpha
    judge_rate: Share = 0.0


class MessplusSettings(Settings):
    """The whole section."""

    zoos: dict[str, ZooSettings] = Field(
        min_length=1,
        description="The zoos, by the `model_name` that their deployments share in `model_list`. "
        "A zoo needs at least two candidates. Requests to any other `model_name` are "
        "not touched.",
    )
    database: str = Field(
        default="sqlite+aiosqlite:///messplus.db",
        description="The database. The default is a file in the folder where the proxy is "
        "started. Four slashes begin an absolute path. For Postgres, install "
        "`litellm-messplus[postgres]`.",
    )
    start_without_database: bool = Field(
        default=True,
        description="Whether the proxy starts while the database does not answer. LiteLLM then "
        "serves as without the plugin, which tries again every five seconds and joins "
        "when the database is there. With `false`, the start stops with the reason.",
    )
    encoder: Annotated[str, Field(min_length=1)] = Field(
        default="hashed-ngrams",
        description="What turns a prompt into features: see encoders. `hashed-ngrams` needs no "
        "download. An encoder that cannot be loaded stops the start.",
    )
    encoder_batch: Annotated[int, Field(ge=1)] = Field(
        default=16,
        description="Prompts that a slow encoder gets at once, at most. A GPU takes sixteen in "
        "little more time than one.",
    )
    encoder_wait_seconds: NotNegative = Field(
        default=0.002, description="How long a prompt may wait for others to be encoded with."
    )
    encoder_cache: Annotated[int, Field(ge=0)] = Field(
        default=10_000,
        description="Texts whose features are kept in memory: a prompt that comes again is not "
        "encoded again.",
    )
    seed: int = Field(
        default=0,
        description="The seed of the draws that decide on explorations. The same seed and number "
        "of request give the same draw.",
    )
    deadline_seconds: Positive = Field(
        default=0.05,
        description="How long a decision may take. Features are waited for four fifths of it, "
        "less the recent lateness of the event loop. Features that come later are "
        "left out, the running means decide, and `encode_seconds` is NULL in the log. "
        "Counted as `features_late`. Where deciding itself takes longer, LiteLLM's own choice "
        "stands, and the request is logged with the reason `deadline_missed`. Counted as "
        "`deadlines_missed`.",
    )
    flush_seconds: Positive = Field(
        default=0.5,
        description="How long decisions and calls may wait to be written. Feedback never waits.",
    )
    feedback_per_minute: Annotated[int, Field(ge=1)] = Field(
        default=600,
        description="Verdicts that one key may give in a minute, to one worker. More are refused, "
        "and counted. Administrators of the proxy have no limit.",
    )
    snapshot_every: Annotated[int, Field(ge=1)] = Field(
        default=10_000,
        description="Log records between two snapshots of the state, of a megabyte or so each. "
        "More records mean a slower start (it folds about 2,500 a second), not a "
        "different one.",
    )
    retention: RetentionSettings | None = Field(
        default=None, description="How long requests are kept."
    )
    alerts: AlertsSettings = Field(
        default_factory=AlertsSettings,
        description="Who is told where a zoo returns to what served before.",
    )
    store_text: bool = Field(
        default=False,
        description="Whether prompts, answers and a judge's reasons are kept in the database. "
        "Without it, the features of a prompt are, but not its words.",
    )
    store_identities: bool = Field(
        default=True,
        description="Whether the key's alias and user, the end user and tags are kept with each "
        "request. The hash of the key and the team's id always are: feedback and its limits need "
        "them.",
    )
    concurrent_explorations: Annotated[int, Field(ge=1)] = Field(
        default=16,
        description="Exploration calls under way at once, in one worker. More are left out, and "
        "counted as `explorations_left_out`.",
    )
    charge_explorations: bool = Field(
        default=False,
        description="Whether LiteLLM's spend for exploration calls goes to the caller's key.",
    )

    @property
    def whole(self) -> frozenset[str]:
        """The zoos whose promise counts conversations as a whole."""
        return frozenset(name for name, zoo in self.zoos.items() if zoo.counts_conversations)
