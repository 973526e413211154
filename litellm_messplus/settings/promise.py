"""What is promised, and what each policy reads of it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Alpha = Annotated[float, Field(gt=0.0, lt=1.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
NotNegative = Annotated[float, Field(ge=0.0)]
Count = Annotated[int, Field(ge=1)]


class Settings(BaseModel):
    """A section of the configuration: unknown keys, infinity and NaN are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def cells(*, allowed: str | None = None, default: str | None = None) -> dict[str, Any]:
    """Return texts for docs/settings.md: what is ``allowed`` beyond the type, and the meaning of a
    value that is left out. For the ``json_schema_extra`` of a `Field`."""
    return {"allowed": allowed, "default_words": default}


class Promise(Settings):
    """The promise to the requests of one service level. The zoo's own is the level `default`;
    a further level states what differs from it."""

    alpha: Alpha = Field(description="The share of requests that must be satisfied.")
    confidence: Annotated[float, Field(ge=0.5, lt=1.0)] | None = Field(
        default=None,
        description="Under `adaptive`: the confidence at which the certificate should say `kept`. "
        "The aim is raised by what its lower bound needs to reach alpha.",
        json_schema_extra=cells(default="none: nothing is raised"),
    )
    label_rate: Share | None = Field(
        default=None,
        description="The share of requests whose labels are "
        "[bought](labels.md#labels-that-are-bought), drawn at random. If left out, labels are "
        "bought where needed.",
        json_schema_extra=cells(default="none: where they are needed"),
    )
    V: Positive = Field(
        default=1e-4,
        description="Under `paper`: the weight of cost against the virtual queue, per unit of "
        "cost. The default is the paper's, per joule: set another for another unit.",
    )
    c: NotNegative = Field(
        default=0.1,
        description="Under `paper`: scales the exploration probability. At 0, only the first "
        "request of a service level is explored.",
    )


class ServiceLevel(Promise):
    """A promise, and the name of its stream of requests."""

    name: str


PolicyName = Literal["adaptive", "paper"]


class SecondAnswer(StrEnum):
    """Settings of a zoo for whether an answer may be replaced by a second model's."""

    AUTO = "auto"
    OFF = "off"


READ_BY: Mapping[PolicyName, frozenset[str]] = {
    "adaptive": frozenset(
        (
            *("confidence", "response_bias"),
            *("second_answer", "answer_score"),
        )
    ),
    "paper": frozenset(("V", "c", "learning_rate")),
}
"""The settings that one policy reads and no other does; all others are read by all of them."""
