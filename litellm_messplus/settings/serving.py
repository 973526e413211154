"""How a zoo serves: how far it has taken over, whose models, at which price of electricity, whether
conversations stay where they are, by which rules; and how long requests are kept."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from litellm_messplus.costs.price import dollars_per_joule, grams_per_joule
from litellm_messplus.runtime.vocabulary import RULE
from litellm_messplus.settings.promise import (
    Count,
    NotNegative,
    Positive,
    SecondAnswer,
    Settings,
    Share,
    cells,
)
from litellm_messplus.switching.modes import Mode


def _as_written(given: Any) -> Any:
    """Convert YAML's `on`, which YAML reads as true."""
    return Mode.ON if given is True else given


ModeName = Annotated[Mode, BeforeValidator(_as_written)]
CanaryShare = Annotated[float, Field(gt=0.0, le=1.0)]

MayReplace = Annotated[
    SecondAnswer,
    Field(
        description="Under `adaptive`: whether an answer that looks bad may be replaced. `auto` "
        "asks another model where that is worth its cost: see [answers](answers.md).",
    ),
]
WantsLogprobs = Annotated[
    bool,
    Field(
        description="Under `adaptive`: whether endpoints are asked for the log-probabilities of "
        "whole chat completions, for [what answers show](answers.md#log-probabilities). A client "
        "that did not ask for them does not get them.",
    ),
]
BY_CHECKS = "checks"
ScoreName = Annotated[
    str | None,
    Field(
        pattern=rf"^({BY_CHECKS}|[\w.]+:[\w.]+)$",
        description="Under `adaptive`: a [score of your own](answers.md#a-score-of-your-own) of "
        "each answer, one more number that answers are read by: a function, or `checks` for what "
        "`labels.checks` say of it.",
        json_schema_extra=cells(allowed="`package.module:function`, or `checks`", default="none"),
    ),
]
Holdout = Annotated[float, Field(ge=0.0, le=0.5)]


class WatchSettings(Settings):
    """The sample of unseen calls for requests that are served as before."""

    sample: Share = Field(
        default=0.02,
        description="The share of requests served as before for which the model that the router "
        "would have chosen is called too, unseen.",
    )
    budget_per_day: NotNegative | None = Field(
        default=None,
        description="What these calls may cost in a day (UTC), in the zoo's unit of cost.",
        json_schema_extra=cells(default="no budget"),
    )


HoldMode = Literal["never", "tool_loop", "warm"]


class Unit(StrEnum):
    """The unit in which a promise counts."""

    REQUEST = "request"
    CONVERSATION = "conversation"


class ConversationsSettings(Settings):
    """The settings of conversations. Defaults depend on the policy."""

    hold: HoldMode | None = Field(
        default=None,
        description="When a request stays with the deployment of the one before it: `never`; "
        "`tool_loop`, while a tool loop is open or the prompt has parts that no other model can "
        "read; `warm`, also while its prompt cache is warm and that saves money.",
        json_schema_extra=cells(default="`warm` under `adaptive`, `never` under `paper`"),
    )
    unit: Unit = Field(
        default=Unit.REQUEST,
        description="What alpha is a share of: `request`, or `conversation`: one verdict for a "
        "whole task, however many requests it takes.",
    )


class ElectricitySettings(Settings):
    """The price of electricity, which converts dollars to joules and back. Without it, a zoo does
    not convert them."""

    price_per_kwh: Positive = Field(description="What electricity costs, in USD per kWh.")
    carbon_per_kwh: NotNegative | None = Field(
        default=None,
        description="What it emits, in grams of CO2e per kWh. Only in a zoo that counts in joules.",
        json_schema_extra=cells(default="none"),
    )

    @property
    def dollars_per_joule(self) -> float:
        return dollars_per_joule(self.price_per_kwh)

    @property
    def grams_per_joule(self) -> float | None:
        return None if self.carbon_per_kwh is None else grams_per_joule(self.carbon_per_kwh)


class TeamModels(StrEnum):
    """The ways to treat models that LiteLLM serves to one team alone."""

    PASS = "pass"
    INCLUDE = "include"


METADATA, KEY, TEAM, TAGS = "metadata.", "key", "team", "tags"
Value = str | int | float | bool


def text_of(value: Value) -> str:
    """Return a value as text, a truth value as JSON writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(given: object) -> tuple[str, ...]:
    """Read a value, or a list of values, one of which a request must have, as sorted text."""
    each = given if isinstance(given, list | tuple) else (given,)
    if not each or not all(isinstance(value, str | int | float) for value in each):
        raise ValueError("a text, a number or a truth value, or a list of such")
    return tuple(sorted(set(map(text_of, each))))


class RuleSettings(Settings):
    """A rule before the choice: a request of which every condition holds goes to one of these
    candidates."""

    when: dict[str, Annotated[tuple[str, ...], BeforeValidator(_values)]] = Field(min_length=1)
    candidates: tuple[str, ...] = Field(min_length=1)

    @property
    def words(self) -> str:
        """The rule as the log names it."""
        conditions = (f"{name} {'/'.join(values)}" for name, values in self.when.items())
        return f"{RULE}{', '.join(conditions)}"

    def covers(self, other: "RuleSettings") -> bool:
        """Return whether this rule holds wherever the other one does."""
        return all(
            name in other.when and set(other.when[name]) <= set(values)
            for name, values in self.when.items()
        )

    @field_validator("when")
    @classmethod
    def _is_known_of_a_request(cls, when: dict[str, Any]) -> dict[str, Any]:
        for name in when:
            is_of_metadata = name.startswith(METADATA) and name != METADATA
            if not (is_of_metadata or name in (KEY, TEAM, TAGS)):
                raise ValueError(f"{METADATA}NAME, {KEY}, {TEAM} or {TAGS}, not '{name}'")
        return when


def _each_can_apply(rules: tuple[RuleSettings, ...]) -> tuple[RuleSettings, ...]:
    for number, rule in enumerate(rules):
        if any(earlier.covers(rule) for earlier in rules[:number]):
            raise ValueError(
                f"rules that can apply: an earlier one always holds before '{rule.words}'"
            )
    return rules


Rules = Annotated[tuple[RuleSettings, ...], AfterValidator(_each_can_apply)]


# How long the proxy keeps requests, and what becomes of older ones.


class RetentionSettings(Settings):
    """The age at which requests leave the log, once a day; what they taught stays."""

    keep_days: Count = Field(
        description="Requests decided more days ago are [pruned](retention.md), once a day. They "
        "can no longer be judged. What they taught stays."
    )
    archive: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="The folder that their rows go to, as Parquet files. Needs the extra "
        "`parquet`: `pip install 'litellm-messplus[parquet]'`. It is created if missing.",
        json_schema_extra=cells(allowed="a folder", default="no archive: they are deleted"),
    )
