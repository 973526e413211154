"""Every setting, its default and what is allowed. Unknown keys are refused."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from litellm_messplus.costs.price import CostUnit
from litellm_messplus.runtime.vocabulary import BEFORE_SUFFIX, GRANT_SUFFIX, level_grants
from litellm_messplus.settings.labels import FREE, BuyingSettings, LabelsSettings
from litellm_messplus.settings.promise import (
    READ_BY,
    PolicyName,
    Positive,
    Promise,
    SecondAnswer,
    ServiceLevel,
    Settings,
    cells,
)
from litellm_messplus.settings.serving import (
    CanaryShare,
    ConversationsSettings,
    ElectricitySettings,
    HoldMode,
    Holdout,
    MayReplace,
    ModeName,
    RetentionSettings,
    ScoreName,
    WatchSettings,
)
from litellm_messplus.switching.modes import DEFAULT_SHARE, Mode, ZooMode

DEFAULT_LEVEL = "default"


class ZooSettings(Promise):
    """The deployments behind one model name of `model_list`. Defaults are the paper's."""

    policy: PolicyName = Field(
        default="adaptive",
        description="How a zoo decides. `adaptive` needs only alpha. `paper` is Algorithm 1 of "
        "MESS+, exactly.",
    )
    cost_unit: CostUnit = Field(
        default=CostUnit.USD,
        description="The unit of cost: `usd` by LiteLLM's prices, `joule` by the energy that "
        "`model_info.messplus` states.",
    )
    electricity: ElectricitySettings | None = Field(
        default=None,
        description="The price that converts joules to dollars and back: see [dollars and "
        "joules](#dollars-and-joules).",
        json_schema_extra=cells(allowed="a section", default="none"),
    )
    largest: str | None = Field(
        default=None,
        description="The candidate whose answer the user gets when all are called, and the "
        "baseline of savings.",
        json_schema_extra=cells(
            allowed="a candidate of the zoo",
            default="the most expensive by price, of [arms](arms.md) of one model that with the "
            "most effort; required where all prices are equal",
        ),
    )
    gates: bool = Field(
        default=True,
        description="Whether models that cannot take a request (its images, tools, length, region "
        "or tags) get one only where none can.",
    )
    conversations: ConversationsSettings = Field(
        default_factory=ConversationsSettings,
        description="Whether a conversation stays with the model that serves it.",
    )
    mode: ModeName = Field(
        default=Mode.ON,
        description="How far the router has taken over: `watch` serves as before and decides in "
        "parallel, `canary` routes a share of the conversations, `on` routes all.",
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
        json_schema_extra=cells(
            allowed="`litellm`, the name of a candidate, or `group:NAME`",
            default="nothing: `mode` must be `on`",
        ),
    )
    holdout: Holdout = Field(
        default=0.0,
        description="Under `on`: the share of conversations that are still served as before, so "
        "that the way back has errors and latency to compare with.",
    )
    watch: WatchSettings = Field(
        default_factory=WatchSettings,
        description="The unseen calls for requests that are served as before.",
    )
    second_answer: MayReplace = SecondAnswer.OFF
    answer_score: ScoreName = None
    labels: LabelsSettings = Field(
        default_factory=LabelsSettings,
        description="Sources of labels in addition to the users' feedback, and which count. `auto` "
        "takes all that cost nothing, and [buys](labels.md#labels-that-are-bought) others.",
        json_schema_extra=cells(allowed="`auto`, or the sections below"),
    )
    buy_labels: BuyingSettings | None = Field(
        default=None,
        description="The judge paid for labels: see [labels](labels.md#labels-that-are-bought).",
        json_schema_extra=cells(default="none: no labels are bought, unless by `labels: auto`"),
    )
    response_bias: Positive = Field(
        default=1.0,
        description="Under `adaptive`: how many times as often unsatisfied users give feedback as "
        "satisfied ones. At 2, a satisfied verdict stands for twice as many requests as an "
        "unsatisfied one.",
    )
    learning_rate: Positive = Field(default=0.06, description="Under `paper`: the step of the SGD.")
    service_levels: dict[str, Promise] = Field(
        default_factory=dict,
        description="Further promises, by the name in the metadata of a key or team. Each has its "
        "own virtual queue and its own count of requests. All share what the zoo has learned.",
        json_schema_extra=cells(allowed="any names but `default`"),
    )
    callers_may: tuple[str, ...] = Field(
        default=(),
        description="The service levels that a request may [choose](#a-level-by-request). "
        "`messplus_callers_may` in the metadata of a key or team counts in its place.",
        json_schema_extra=cells(allowed="names of service levels, or `default`"),
    )

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, given: Any) -> Any:
        """Let `auto` buy labels and take those that are free, and levels take from their zoo what
        they do not state."""
        if isinstance(given, dict) and given.get("labels") == "auto":
            given = {"buy_labels": {}, **given, "labels": FREE}
        levels = given.get("service_levels") if isinstance(given, dict) else None
        if not isinstance(levels, dict):
            return given
        own = {name: given[name] for name in Promise.model_fields if name in given}
        filled = {}
        for name, level in levels.items():
            stated = level.items() if isinstance(level, dict) else ()
            differing = {key: value for key, value in stated if value is not None}
            filled[name] = {**own, **differing} if isinstance(level, dict) else level
        return {**given, "service_levels": filled}

    @field_validator("callers_may")
    @classmethod
    def _may_be_granted(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        known = (DEFAULT_LEVEL, *(info.data.get("service_levels") or ()))
        if not set(given) <= set(known):
            raise ValueError(", ".join(known))
        return given

    @model_validator(mode="after")
    def _every_setting_is_read(self) -> Self:
        given = self.model_fields_set.union(
            *(level.model_fields_set for level in self.service_levels.values())
        )
        for policy, names in READ_BY.items():
            unread = " and ".join(sorted(given & names))
            if policy != self.policy and unread:
                raise ValueError(f"without {unread}, which only `policy: {policy}` reads")
        hold = self.conversations.hold
        if self.policy == "paper" and hold not in (None, "never"):
            raise ValueError(
                f"without `conversations.hold: {hold}`, which only `policy: adaptive` reads: "
                "`policy: paper` decides every request"
            )
        return self

    @model_validator(mode="after")
    def _labels_can_be_bought(self) -> Self:
        if self.buy_labels is None:
            rates = (self.label_rate, *(each.label_rate for each in self.service_levels.values()))
            if any(rates):
                raise ValueError("`buy_labels` with `label_rate`: who is paid for the labels")
            return self
        if self.policy == "paper" and self.buys_answers_apart:
            raise ValueError(
                "`buy_labels.how: grade` at a `label_rate`: others only `policy: adaptive` buys"
            )
        is_counted = self.cost_unit is CostUnit.USD or self.electricity is not None
        if self.label_rate is None and not is_counted:
            raise ValueError(
                "`electricity` with `buy_labels` in a zoo of joules: what labels may cost is a "
                "share of what is saved, and judges are paid in dollars"
            )
        return self

    @property
    def hold(self) -> HoldMode:
        """The mode of holding conversations: `warm` by default, `never` with the paper's policy."""
        return self.conversations.hold or ("never" if self.policy == "paper" else "warm")

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        if self.holdout > 0.0 and self.before is None:
            raise ValueError(
                "`before` with `holdout`: what serves the conversations that are held out"
            )
        for name in self.service_levels:
            if name == DEFAULT_LEVEL:
                raise ValueError(
                    f"the service level '{name}' is the zoo's own alpha, V and c: set it there"
                )
            if name.endswith((BEFORE_SUFFIX, GRANT_SUFFIX)):
                raise ValueError(f"no service level '{name}': that name means something else")
        return self

    @property
    def zoo_mode(self) -> ZooMode:
        """The mode in the file; later changes are in the database."""
        return ZooMode(self.mode, self.share, self.before, holdout=self.holdout)

    def of_dollars(self, dollars: float) -> float | None:
        """Convert dollars into the unit of cost; None if no price of electricity is stated."""
        if self.cost_unit is CostUnit.USD:
            return dollars
        return None if self.electricity is None else dollars / self.electricity.dollars_per_joule

    @property
    def buys_answers_apart(self) -> bool:
        """Whether labels are bought for some answers and not for others: for those that are
        compared, or where they are needed."""
        given = self.buy_labels
        return given is not None and (given.how == "compare" or self.label_rate is None)

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of all promises: of each level to its keys, and to those who requested it."""
        levels = (DEFAULT_LEVEL, *self.service_levels)
        return (*levels, *map(level_grants, levels))

    def level(self, name: str) -> ServiceLevel:
        """Return the promise of that name, which may be a level's to those who requested it.

        Raises KeyError for a name that is not configured.
        """
        promise = name.removesuffix(GRANT_SUFFIX)
        own = self if promise == DEFAULT_LEVEL else self.service_levels[promise]
        stated = {each: getattr(own, each) for each in Promise.model_fields}
        return ServiceLevel(name=name, **stated)


class MessplusSettings(Settings):
    """The whole section."""

    zoos: dict[str, ZooSettings] = Field(
        min_length=1,
        description="The zoos, by the `model_name` that their deployments share in `model_list`. "
        "A zoo needs at least two candidates. Requests to any other `model_name` are "
        "not touched.",
        json_schema_extra=cells(allowed="at least one zoo"),
    )
    database: str = Field(
        default="sqlite+aiosqlite:///messplus.db",
        description="The database. The default is a file in the folder where the proxy is "
        "started. Four slashes begin an absolute path. For Postgres, install "
        "`litellm-messplus[postgres]`.",
        json_schema_extra=cells(
            allowed="an SQLAlchemy URL with the driver `sqlite+aiosqlite` or `postgresql+asyncpg`"
        ),
    )
    encoder: Annotated[str, Field(min_length=1)] = Field(
        default="hashed-ngrams",
        description="What turns a prompt into features: see [encoders](encoders.md). "
        "`hashed-ngrams` needs no download. An encoder that cannot be loaded stops the start.",
        json_schema_extra=cells(
            allowed="`hashed-ngrams`, `none`, `package.module:attribute`, else a Hugging Face name "
            "or a folder"
        ),
    )
    seed: int = Field(
        default=0,
        description="The seed of the draws that decide on explorations. The same seed and request "
        "id give the same draw.",
    )
    deadline_seconds: Positive = Field(
        default=0.05,
        description="How long a decision may take. It waits for features for four fifths of it. If "
        "they come later, the running means decide without them, and `encode_seconds` is NULL in "
        "the log; counted as `features_late`. If the decision itself takes longer, LiteLLM's own "
        "choice stands, and the request is logged with the reason `deadline_missed`; counted as "
        "`deadlines_missed`.",
    )
    flush_seconds: Positive = Field(
        default=0.5,
        description="How long decisions and calls may wait to be written. Feedback never waits.",
    )
    brain: str = Field(
        default="process",
        pattern=r"^(process|inside|tcp://[^/:\s]+:[0-9]{1,5})$",
        description="Where requests are decided and learned from: in one process for all workers "
        "of this machine, which a worker starts; `inside` the only worker; or by a service for "
        "several machines, `tcp://host:port`, which `messplus brain` runs there and whose token "
        "is `MESSPLUS_BRAIN_TOKEN`: see [many workers](scaling.md).",
        json_schema_extra=cells(allowed="`process`, `inside`, or `tcp://host:port`"),
    )
    retention: RetentionSettings | None = Field(
        default=None,
        description="How long requests are kept.",
        json_schema_extra=cells(
            allowed="a section, see below", default="no retention: all requests are kept"
        ),
    )
    store_text: bool = Field(
        default=False,
        description="Whether prompts, answers and a judge's reasons are kept in the database. If "
        "not, only the features of a prompt are kept, not its text.",
    )
    store_identities: bool = Field(
        default=True,
        description="Whether the key's alias and user, the end user and tags are kept with each "
        "request. The hash of the key and the team's id always are: feedback and its limits need "
        "them.",
    )

    @property
    def response_biases(self) -> Mapping[str, float]:
        """The `response_bias` of each zoo."""
        return {name: zoo.response_bias for name, zoo in self.zoos.items()}
