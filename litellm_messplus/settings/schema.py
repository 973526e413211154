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
    """Once a day, what is older leaves the log; what it taught stays."""

    keep_days: Annotated[int, Field(ge=1)] = Field(
        description="Requests that were decided longer ago are pruned, and can be judged no more."
    )
    archive: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="The folder that their rows go to, as Parquet files."
    )
    drop: bool = Field(
        default=False, description="Whether their rows are deleted without an archive."
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

    alpha: Alpha | None = Field(
        default=None, description="The share of requests that must be satisfied."
    )
    V: Positive | None = Field(
        default=None, description="The weight of cost against the virtual queue, per unit of cost."
    )
    c: NotNegative | None = Field(
        default=None, description="Scales the exploration probability c / t^(1/4)."
    )
    margin: NotNegative | None = Field(
        default=None, description="Standard errors of the rate to hold on top of alpha."
    )
    judge_rate: Share | None = Field(
        default=None, description="The share of requests that the zoo's judge grades."
    )


class ElectricitySettings(Settings):
    """Where dollars and joules meet. Without it, a zoo takes neither for the other."""

    price_per_kwh: Positive = Field(description="What electricity costs, in USD per kWh.")
    carbon_per_kwh: NotNegative | None = Field(
        default=None, description="What it emits, in grams of CO2e per kWh."
    )

    @property
    def dollars_per_joule(self) -> float:
        return dollars_per_joule(self.price_per_kwh)

    @property
    def grams_per_joule(self) -> float | None:
        return None if self.carbon_per_kwh is None else grams_per_joule(self.carbon_per_kwh)


class TrustSettings(Settings):
    """How far a zoo's labels can be trusted; read by `adaptive` only."""

    margin: NotNegative = Field(
        default=0.0,
        description="Standard errors of the satisfaction rate to hold on top of alpha.",
    )
    response_bias: Positive | Literal["audit"] = Field(
        default=1.0,
        description="How many times as often unsatisfied users answer as satisfied ones; `audit` "
        "estimates it from the requests that the judge grades.",
    )
    label_noise: Annotated[float, Field(ge=0.0, lt=0.5)] = Field(
        default=0.0, description="The probability that a label is wrong."
    )


class ZooSettings(TrustSettings):
    """The deployments behind one model name of `model_list`. Defaults are the paper's."""

    alpha: Alpha = Field(description="The share of requests that must be satisfied.")
    policy: Literal["adaptive", "paper"] = Field(
        default="adaptive",
        description="`adaptive` needs alpha alone; `paper` is Algorithm 1 of MESS+, exactly, and "
        "the only one that reads V, c and the settings of its predictor's SGD.",
    )
    V: Positive = Field(
        default=1e-4,
        description="The weight of cost against the virtual queue, per unit of cost. "
        "The default is the paper's and per joule: in another unit, set another.",
    )
    c: NotNegative = Field(
        default=0.1, description="Scales the exploration probability c / t^(1/4)."
    )
    learning_rate: Positive = Field(default=0.06, description="Of the predictor's SGD.")
    momentum: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.9, description="Of the predictor's SGD."
    )
    weight_decay: NotNegative = Field(
        default=0.01, description="The paper's mu, the strength of the regularisation."
    )
    exploration_wait_seconds: Positive = Field(
        default=600.0,
        description="How long the predictor waits for the labels of all of an exploration's calls, "
        "before it learns from those that are there.",
    )
    cost_unit: CostUnit = Field(
        default=CostUnit.USD,
        description="What cost is counted in: `usd` by LiteLLM's prices, `joule` by the energy "
        "that `model_info.messplus` states.",
    )
    electricity: ElectricitySettings | None = Field(
        default=None, description="What turns joules into dollars, and back."
    )
    largest: str | None = Field(
        default=None,
        description="The candidate whose answer the user gets when all are called, and against "
        "which savings are stated. Left out: the most expensive by price.",
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
        description="Further promises, by the name that a key's or team's metadata gives under "
        "`messplus_service_level`.",
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
        """The promise of that name, with what it leaves out taken from the zoo.

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
        min_length=1, description="By the `model_name` that the deployments share in `model_list`."
    )
    database: str = Field(
        default="sqlite+aiosqlite:///messplus.db",
        description="SQLAlchemy URL with the driver `sqlite+aiosqlite` or `postgresql+asyncpg`.",
    )
    start_without_database: bool = Field(
        default=True,
        description="Whether the proxy starts while the database does not answer: LiteLLM then "
        "serves as without the plugin, which joins when the database is there.",
    )
    encoder: Annotated[str, Field(min_length=1)] = Field(
        default="hashed-ngrams",
        description="What turns a prompt into features: `hashed-ngrams`, `none`, `static:FOLDER`, "
        "`onnx:FOLDER`, `package.module:attribute`, or a Hugging Face name or folder.",
    )
    encoder_batch: Annotated[int, Field(ge=1)] = Field(
        default=16, description="Prompts that a slow encoder gets at once, at most."
    )
    encoder_wait_seconds: NotNegative = Field(
        default=0.002, description="How long a prompt may wait for others to be encoded with it."
    )
    encoder_cache: Annotated[int, Field(ge=0)] = Field(
        default=10_000, description="Texts whose features are kept in memory, the newest ones."
    )
    seed: int = Field(default=0, description="Of the exploration draws.")
    deadline_seconds: Positive = Field(
        default=0.05,
        description="What a decision may take. Features that come later are not waited for, and "
        "where deciding itself takes longer, LiteLLM's own choice stands.",
    )
    flush_seconds: Positive = Field(
        default=0.5,
        description="How long decisions and calls may wait to be written. Feedback never waits.",
    )
    feedback_per_minute: Annotated[int, Field(ge=1)] = Field(
        default=600,
        description="Verdicts that one key may give in a minute, in one worker; more are refused "
        "and counted. Administrators of the proxy have no limit.",
    )
    snapshot_every: Annotated[int, Field(ge=1)] = Field(
        default=10_000,
        description="Log records between two snapshots of the state, of a megabyte or so each; a "
        "start folds those since the newest, about 2,500 a second.",
    )
    retention: RetentionSettings | None = Field(
        default=None, description="How long requests are kept; left out, all are."
    )
    store_text: bool = Field(
        default=False, description="Whether prompts and answers are kept in the database."
    )
    concurrent_explorations: Annotated[int, Field(ge=1)] = Field(
        default=16,
        description="Exploration calls under way at once; more are left out and counted.",
    )
    charge_explorations: bool = Field(
        default=False,
        description="Whether LiteLLM's spend for exploration calls goes to the caller's key.",
    )
