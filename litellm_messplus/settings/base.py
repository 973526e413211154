"""What all sections of the settings share: unknown keys and numbers that are none are refused."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Alpha = Annotated[float, Field(gt=0.0, lt=1.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
NotNegative = Annotated[float, Field(ge=0.0)]


class Settings(BaseModel):
    """A section of the configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
