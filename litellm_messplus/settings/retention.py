"""How long the proxy keeps requests, and what becomes of older ones."""

from typing import Annotated

from pydantic import Field, model_validator

from litellm_messplus.settings.base import Settings


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
