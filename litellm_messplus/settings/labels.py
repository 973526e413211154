"""Where a zoo's labels come from besides the users' feedback, and whose label counts."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from litellm_messplus.runtime.vocabulary import PRECEDENCE, LabelKind
from litellm_messplus.settings.promise import NotNegative, Settings, Share, cells

RUBRIC = (
    "An answer is satisfactory if the user who asked could use it as it is: it does what was "
    "asked, is correct, is complete, and follows every instruction about form and length. It is "
    "not if it is wrong, evades or refuses without need, stops early, or invents facts. Length and "
    "politeness alone are no merit."
)


class ChecksSettings(Settings):
    """The checks by which a program judges an answer at once. Each that applies gives a label of
    its own, and an answer must pass them all."""

    complete: bool = Field(
        default=False,
        description="Whether to label an answer unsatisfactory if it is empty, cut off by length "
        "(unless the client set the length) or refused by a content filter. A request without an "
        "answer gets no label. This check never labels an answer satisfactory.",
    )
    json_schema: bool = Field(
        default=False,
        description="Whether to label an answer unsatisfactory if it does not fit the request's "
        "JSON schema, or a tool call does not fit its definition. This check never labels an "
        "answer satisfactory.",
    )
    reference: bool = Field(
        default=False,
        description="Whether the whole answer is compared with the request's "
        "[`messplus_reference`](labels.md#a-reference).",
    )
    callables: dict[str, Annotated[str, Field(pattern=r"^[\w.]+:[\w.]+$")]] = Field(
        default_factory=dict,
        description="Functions that judge an answer, sync or async. Each gets one answered call, "
        "and returns true, false, a score from 0 to 1, or None if it cannot tell. After 5 seconds "
        "there is no label.",
        json_schema_extra=cells(allowed="`package.module:function`, by name"),
    )

    @property
    def sources(self) -> list[str]:
        """The source of the labels of each check that is on."""
        own = [name for name in ("complete", "json_schema", "reference") if getattr(self, name)]
        return [f"check:{name}" for name in (*own, *self.callables)]


class BuyingSettings(Settings):
    """The model that judges answers in the background, and what that may cost."""

    how: Literal["compare", "grade"] = Field(
        default="compare",
        description="`compare`: an answer satisfies if it is [at least as good](labels.md#compare) "
        "as the largest candidate's. `grade`: if it meets [the rubric](labels.md#grade).",
    )
    judge: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="The model that judges; not the zoo itself.",
        json_schema_extra=cells(
            allowed="a `model_name` of `model_list` that is no zoo",
            default="the largest candidate",
        ),
    )
    rubric: Annotated[str, Field(min_length=1)] = Field(
        default=RUBRIC,
        description="What makes an answer satisfactory; sent to the judge under `how: grade`.",
        json_schema_extra=cells(allowed="text", default="see [labels](labels.md#grade)"),
    )
    budget_per_day: NotNegative | None = Field(
        default=None,
        description="Dollars that the judge may cost in a day (UTC), at LiteLLM's price, which it "
        "must have. Without a `label_rate`, calls that are made to be judged count too.",
        json_schema_extra=cells(default="none"),
    )
    share_of_saved: Share = Field(
        default=0.1,
        description="Without a `label_rate`: the share of what routing saves that labels may cost.",
    )


FREE: dict[str, Any] = {
    "checks": {"complete": True, "json_schema": True, "reference": True},
}
"""The sources that cost nothing: what `labels: auto` turns on, besides that labels are bought."""


class LabelsSettings(Settings):
    """A zoo's `labels:`."""

    precedence: tuple[LabelKind, ...] = Field(
        default=PRECEDENCE,
        min_length=1,
        description="The kinds of labels that count, the strongest first. Labels of other kinds "
        "are only logged.",
        json_schema_extra=cells(allowed="some or all of `feedback`, `check`, `judge`"),
    )
    checks: ChecksSettings = Field(
        default_factory=ChecksSettings,
        description="Checks by a program. All are off by default.",
    )
    key_pull: Share = Field(
        default=0.005,
        description="How far one key may move the satisfaction of a service level in a day, as a "
        "share, by all labels that its clients cause; a key with many of the requests may move it "
        "further: see [labels](labels.md#how-much-one-key-may-say). Labels beyond that are only "
        "logged. `1` switches it off.",
    )

    @model_validator(mode="after")
    def _each_kind_once(self) -> Self:
        if len(set(self.precedence)) < len(self.precedence):
            raise ValueError("each kind of labels once")
        return self

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of labels that cost nothing: feedback is always one."""
        return ("feedback", *self.checks.sources)
