"""How a zoo serves: how far it has taken over, at which price of electricity, whether
conversations stay where they are; and how long requests are kept."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from litellm_messplus.costs.price import dollars_per_joule
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


class ConversationsSettings(Settings):
    """The settings of conversations. Defaults depend on the policy."""

    hold: HoldMode | None = Field(
        default=None,
        description="When a request stays with the deployment of the one before it: `never`; "
        "`tool_loop`, while a tool loop is open or the prompt has parts that no other model can "
        "read; `warm`, also while its prompt cache is warm and that saves money.",
        json_schema_extra=cells(default="`warm` under `adaptive`, `never` under `paper`"),
    )


class ElectricitySettings(Settings):
    """The price of electricity, which converts dollars to joules and back. Without it, a zoo does
    not convert them."""

    price_per_kwh: Positive = Field(description="What electricity costs, in USD per kWh.")

    @property
    def dollars_per_joule(self) -> float:
        return dollars_per_joule(self.price_per_kwh)


# How long the proxy keeps requests.


class RetentionSettings(Settings):
    """The age at which requests leave the log, once a day; what they taught stays."""

    keep_days: Count = Field(
        description="Requests decided more days ago are [pruned](retention.md), once a day. They "
        "can no longer be judged. What they taught stays."
    )
