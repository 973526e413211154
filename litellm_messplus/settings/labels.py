"""Where a zoo's labels come from beside the users' feedback, and whose word counts."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from litellm_messplus.runtime.vocabulary import PRECEDENCE, LabelKind
from litellm_messplus.settings.promise import Count, NotNegative, Positive, Settings, Share, cells

RUBRIC = (
    "An answer is satisfactory if the user who asked could use it as it is: it does what was "
    "asked, is correct, is complete, and follows every instruction about form and length. It is "
    "not if it is wrong, evades or refuses without need, stops early, or invents facts. Length and "
    "politeness alone are no merit."
)


class CallableCheckSettings(Settings):
    """A function of the operator's that judges an answer."""

    callable: Annotated[str, Field(pattern=r"^[\w.]+:[\w.]+$")] = Field(
        description="The function, sync or async. It gets one answered call and returns true, "
        "false, a score from 0 to 1, or None where it cannot say.",
        json_schema_extra=cells(allowed="`package.module:function`"),
    )
    timeout_seconds: Positive = Field(
        default=5.0, description="How long it may take. Then there is no label."
    )


class ChecksSettings(Settings):
    """The checks by which a program judges an answer at once. Each that applies gives a label of
    its own, and an answer must pass them all."""

    complete: bool = Field(
        default=False,
        description="Whether an answer that is empty, cut off by length or refused by a content "
        "filter is unsatisfactory; not where the client set the length. A request without an "
        "answer gets no label. This check never says that an answer is satisfactory.",
    )
    json_schema: bool = Field(
        default=False,
        description="Whether an answer that does not fit the request's JSON schema, or a tool "
        "call that does not fit its definition, is unsatisfactory. This check never "
        "says that an answer is satisfactory.",
    )
    reference: bool = Field(
        default=False,
        description="Whether answers are compared with the reference in the request's metadata.",
    )
    callables: dict[str, CallableCheckSettings] = Field(
        default_factory=dict,
        description="Functions that judge an answer.",
        json_schema_extra=cells(allowed="checks of your own, by name"),
    )


class BuyingSettings(Settings):
    """A model that says in the background which answers satisfy, and what that may cost."""

    how: Literal["compare", "grade"] = Field(
        default="compare",
        description="`compare`: an answer satisfies that is [at least as good](labels.md#compare) "
        "as the largest candidate's. `grade`: one that satisfies [the rubric](labels.md#grade).",
    )
    judge: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="Who judges; not the zoo itself.",
        json_schema_extra=cells(
            allowed="a `model_name` of `model_list` that is no zoo",
            default="the largest candidate",
        ),
    )
    rubric: Annotated[str, Field(min_length=1)] = Field(
        default=RUBRIC,
        description="What makes an answer satisfactory, told to the judge under `how: grade`.",
        json_schema_extra=cells(allowed="text", default="see [labels](labels.md#grade)"),
    )
    budget_per_day: NotNegative | None = Field(
        default=None,
        description="Dollars that the judge may cost in a day (UTC), by LiteLLM's prices: it must "
        "have one. Without a `label_rate`, calls that are made to be judged count too.",
        json_schema_extra=cells(default="none"),
    )
    gradings_per_day: Annotated[int, Field(ge=0)] = Field(
        default=10_000,
        description="Times that the judge may be asked in a day (UTC), whatever comes of it.",
    )
    share_of_saved: Share = Field(
        default=0.1,
        description="Without a `label_rate`: the share that labels may cost of what routing saves.",
    )
    timeout_seconds: Positive = Field(default=60.0, description="How long one grading may take.")
    concurrent: Count = Field(default=2, description="Gradings under way at once, in one worker.")


FREE: dict[str, Any] = {
    "checks": {"complete": True, "json_schema": True, "reference": True},
    "implicit": {},
}
"""The sources that cost nothing: what `labels: auto` says, beside that labels are bought."""


class ImplicitSettings(Settings):
    """The rules that read satisfaction from what the user does next: asking again says that the
    answer did not satisfy, going on that it did."""

    within_seconds: Positive = Field(
        default=180.0, description="How long after an answer the next question speaks of it."
    )
    similarity: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        default=0.8,
        description="From which likeness of two questions on, from 0 to 1, one is the other asked "
        "again.",
    )


class LabelsSettings(Settings):
    """A zoo's `labels:`."""

    precedence: tuple[LabelKind, ...] = Field(
        default=PRECEDENCE,
        min_length=1,
        description="The kinds of labels that count, the strongest first. What is left out is "
        "kept in the log alone.",
        json_schema_extra=cells(allowed="some or all of `feedback`, `check`, `judge`, `implicit`"),
    )
    checks: ChecksSettings = Field(
        default_factory=ChecksSettings,
        description="What a program can check. Nothing, unless switched on.",
    )
    implicit: ImplicitSettings | None = Field(
        default=None, description="What the next question says of the answer before it."
    )
    key_pull: Share = Field(
        default=0.005,
        description="How far one key may move the satisfaction of a service level in a day, as a "
        "share, by all labels that its clients cause; a key that makes much of the requests may "
        "move it further: see [labels](labels.md#how-much-one-key-may-say). What goes beyond is "
        "kept in the log alone. `1` switches it off.",
    )

    @model_validator(mode="after")
    def _each_kind_once(self) -> Self:
        if len(set(self.precedence)) < len(self.precedence):
            raise ValueError("each kind of labels once")
        return self
