"""Every setting, its default and what is allowed. Unknown keys are refused."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from litellm_messplus.costs.price import CostUnit, dollars_per_joule, grams_per_joule
from litellm_messplus.settings.labels import (
    Alpha,
    LabelsSettings,
    NotNegative,
    Positive,
    Settings,
    Share,
)

# How long the proxy keeps requests, and what becomes of older ones.


class RetentionSettings(Settings):
    """The age of what leaves the log, once a day; what it taught stays."""

    keep_days: Annotated[int, Field(ge=1)] = Field(
        description="Requests that were decided longer ago are pruned, once a day. They can be "
        "judged no more. What they taught stays."
    )
    archive: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="The folder that their rows go to, as Parquet files. It is made where it is "
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
PAPER_ONLY = frozenset(
    {"V", "c", "learning_rate", "momentum", "weight_decay", "exploration_wait_seconds"}
)
AUDIT = "audit"
ADAPTIVE_ONLY = frozenset({"margin", "response_bias", "label_noise"})


class ServiceLevelSettings(Settings):
    """A named promise. What is left out is taken from its zoo."""

    alpha: Alpha | None = Field(default=None, description="The share promised at this level.")
    V: Positive | None = Field(
        default=None, description="Under `paper`: the weight of cost at this level."
    )
    c: NotNegative | None = Field(
        default=None, description="Under `paper`: how much this level explores."
    )
    margin: NotNegative | None = Field(
        default=None, description="Under `adaptive`: the margin of this level."
    )
    judge_rate: Share | None = Field(
        default=None, description="The share that is graded at this level."
    )


class ElectricitySettings(Settings):
    """The price of electricity, by which dollars and joules are converted. Without it, a zoo takes
    neither for the other."""

    price_per_kwh: Positive = Field(description="What electricity costs, in USD per kWh.")
    carbon_per_kwh: NotNegative | None = Field(
        default=None,
        description="What it emits, in grams of CO2e per kWh. Only in a zoo that counts in joules.",
    )

    @property
    def dollars_per_joule(self) -> float:
        return dollars_per_joule(self.price_per_kwh)

    @property
    def grams_per_joule(self) -> float | None:
        return None if self.carbon_per_kwh is None else grams_per_joule(self.carbon_per_kwh)


class TrustSettings(Settings):
    """The trust in a zoo's labels; read by `adaptive` only."""

    margin: NotNegative = Field(
        default=0.0,
        description="Under `adaptive`: standard errors of the satisfaction rate to hold on top of "
        "alpha.",
    )
    response_bias: Positive | Literal["audit"] = Field(
        default=1.0,
        description="How many times as often unsatisfied users answer as satisfied ones. At 2, a "
        "satisfied verdict stands for twice as many requests as an unsatisfied one. "
        "`audit` estimates it from the requests that the zoo's judge grades.",
    )
    label_noise: Annotated[float, Field(ge=0.0, lt=0.5)] = Field(
        default=0.0,
        description="The probability that a verdict is wrong. The zoo then aims at the share of "
        "satisfied verdicts that shows when alpha is held in truth.",
    )


class ZooSettings(TrustSettings):
    """The deployments behind one model name of `model_list`. Defaults are the paper's."""

    alpha: Alpha = Field(description="The share of requests that must be satisfied.")
    policy: Literal["adaptive", "paper"] = Field(
        default="adaptive",
        description="How a zoo decides. `adaptive` needs alpha alone. `paper` is Algorithm 1 of "
        "MESS+, exactly.",
    )
    V: Positive = Field(
        default=1e-4,
        description="Under `paper`: the weight of cost against the virtual queue, per unit of "
        "cost. The default is the paper's and per joule: in another unit, set "
        "another.",
    )
    c: NotNegative = Field(
        default=0.1,
        description="Under `paper`: scales the exploration probability. At 0, only the first "
        "request of a service level is explored.",
    )
    learning_rate: Positive = Field(default=0.06, description="Under `paper`: the step of the SGD.")
    momentum: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.9, description="Under `paper`: the momentum of the SGD."
    )
    weight_decay: NotNegative = Field(
        default=0.01,
        description="Under `paper`: its mu, the strength of the regularisation of the SGD.",
    )
    exploration_wait_seconds: Positive = Field(
        default=600.0,
        description="Under `paper`: how long the predictor waits for the labels of all of an "
        "exploration's calls, before it learns from those that are there.",
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
        unread, reader = (
            (ADAPTIVE_ONLY, "adaptive") if self.policy == "paper" else (PAPER_ONLY, "paper")
        )
        given = unread.intersection(self.model_fields_set.union(*levels))
        if given:
            names = " and ".join(sorted(given))
            raise ValueError(f"without {names}, which only `policy: {reader}` reads")
        return self

    @model_validator(mode="after")
    def _an_audit_has_a_judge(self) -> "ZooSettings":
        if self.response_bias == AUDIT and self.labels.judge is None:
            raise ValueError("`labels.judge` beside `response_bias: audit`: it makes the audit")
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

    def level(self, name: str) -> "ServiceLevel":
        """Return the promise of that name, with what it leaves out taken from the zoo.

        Raises KeyError for a name that is not configured.
        """
        own = ServiceLevelSettings() if name == DEFAULT_LEVEL else self.service_levels[name]
        return ServiceLevel(
            name=name,
            alpha=self.alpha if own.alpha is None else own.alpha,
            V=self.V if own.V is None else own.V,
            c=self.c if own.c is None else own.c,
            margin=self.margin if own.margin is None else own.margin,
            response_bias=self.response_bias,
            label_noise=self.label_noise,
            judge_rate=self._judge_rate(own),
        )

    def _judge_rate(self, own: ServiceLevelSettings) -> float:
        judge = self.labels.judge
        if judge is None:
            return 0.0
        return judge.rate if own.judge_rate is None else own.judge_rate


class ServiceLevel(TrustSettings):
    """A promise with every value filled in."""

    name: str
    alpha: Alpha
    V: Positive
    c: NotNegative
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
        "left out, the running means decide, and the reason says so. Counted as "
        "`features_late`. Where deciding itself takes longer, LiteLLM's own choice "
        "stands. Counted as `deadlines_missed`.",
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
    store_text: bool = Field(
        default=False,
        description="Whether prompts, answers and a judge's reasons are kept in the database. "
        "Without it, the features of a prompt are, but not its words.",
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
