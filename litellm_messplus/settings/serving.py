"""How a zoo serves: how far it has taken over, whose models, at which price of electricity, and
whether conversations stay where they are."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from litellm_messplus.costs.price import dollars_per_joule, grams_per_joule
from litellm_messplus.settings.promise import NotNegative, Positive, Settings, Share, cells
from litellm_messplus.switching.modes import Mode


def _as_written(given: Any) -> Any:
    """Convert YAML's `on`, which YAML reads as true."""
    return Mode.ON if given is True else given


ModeName = Annotated[Mode, BeforeValidator(_as_written)]
CanaryShare = Annotated[float, Field(gt=0.0, le=1.0)]

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
