"""Where a zoo's labels come from beside the users' feedback, and whose word counts."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from litellm_messplus.vocabulary import PRECEDENCE, LabelKind

# What all sections of the settings share: unknown keys and numbers that are none are refused.

Alpha = Annotated[float, Field(gt=0.0, lt=1.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
NotNegative = Annotated[float, Field(ge=0.0)]


class Settings(BaseModel):
    """A section of the configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


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
        "false, a score from 0 to 1, or None where it cannot say."
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
        default_factory=dict, description="Functions that judge an answer."
    )
    weight: Positive = Field(default=1.0, description="How much a label of a check counts.")


class GradingSettings(Settings):
    """The bounds of a model that says in the background which answers satisfy."""

    budget_per_day: NotNegative | None = Field(
        default=None,
        description="Dollars that grading may cost in a day (UTC), by LiteLLM's prices. The judge "
        "must have a price.",
    )
    gradings_per_day: Annotated[int, Field(ge=0)] = Field(
        default=10_000,
        description="Times that the judge may be asked in a day (UTC), whatever comes of it.",
    )
    timeout_seconds: Positive = Field(default=60.0, description="How long one grading may take.")
    concurrent: Annotated[int, Field(ge=1)] = Field(
        default=2, description="Gradings under way at once, in one worker."
    )
    waiting: Annotated[int, Field(ge=1)] = Field(
        default=1000,
        description="Requests that may wait to be graded, in one worker. More are left out, and "
        "counted.",
    )
    patience_seconds: Positive = Field(
        default=1800.0,
        description="How long a request waits for a judge that fails, before it is left out.",
    )
    weight: Positive = Field(default=1.0, description="How much a label of the judge counts.")
    least_agreement: Annotated[float, Field(ge=-1.0, le=1.0)] = Field(
        default=0.2,
        description="Cohen's kappa with the users' feedback. Where it lies below this with 95 % "
        "confidence, the judge's labels stop counting.",
    )


class JudgeSettings(GradingSettings):
    """A model that grades answers in the background, on a sample."""

    model: Annotated[str, Field(min_length=1)] = Field(
        description="The `model_name` of `model_list` that grades; not the zoo itself."
    )
    rate: Share = Field(
        default=0.05,
        description="The share of requests that are graded, drawn at random; a service level may "
        "have its own.",
    )
    rubric: Annotated[str, Field(min_length=1)] = Field(
        default=RUBRIC, description="What makes an answer satisfactory, told to the judge."
    )


class ComparingSettings(GradingSettings):
    """A model that compares an answer with the largest candidate's."""

    judge: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="The `model_name` of `model_list` that compares; not the zoo itself. Left out, "
        "the largest candidate does.",
    )
    most_position_bias: Share = Field(
        default=0.3,
        description="By how much more often the judge may prefer the answer that it is shown first "
        "to the other, or less, as a share. Beyond, with 95 % confidence, its labels stop "
        "counting.",
    )


class ParitySettings(ComparingSettings):
    """An answer satisfies that is at least as good as the largest candidate's."""

    rate: Share = Field(
        default=0.1,
        description="The share of requests that are compared, drawn at random; a service level may "
        "have its own, as `judge_rate`.",
    )


class AutoSettings(ComparingSettings):
    """Labels that cost nothing are taken, and others bought where they are needed."""

    by: Literal["parity", "judge"] = Field(
        default="parity",
        description="How labels are bought: `parity` compares with the largest candidate's answer, "
        "`judge` grades each answer by the rubric.",
    )
    budget_per_day: NotNegative | None = Field(
        default=None,
        description="Dollars that labels may cost in a day (UTC), by LiteLLM's prices: calls that "
        "no user sees, and the judge, which must have a price.",
    )
    share_of_saved: Share = Field(
        default=0.1, description="Of what routing saves, the share that labels may cost."
    )
    start_allowance: Share = Field(
        default=0.02,
        description="What labels may cost before anything is saved: a share of what a day of "
        "requests would cost at the largest candidate.",
    )
    rubric: Annotated[str, Field(min_length=1)] = Field(
        default=RUBRIC,
        description="What makes an answer satisfactory, told to the judge under `by: judge`.",
    )


FREE: dict[str, Any] = {
    "checks": {"complete": True, "json_schema": True, "reference": True},
    "implicit": {},
}
"""Sources that cost nothing: `auto` takes them unless the section says otherwise."""


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
    weight: Positive = Field(default=0.3, description="How much such a label counts.")


class LabelsSettings(Settings):
    """A zoo's `labels:`."""

    precedence: tuple[LabelKind, ...] = Field(
        default=PRECEDENCE,
        min_length=1,
        description="The kinds of labels that count, the strongest first. What is left out is "
        "kept in the log alone.",
    )
    checks: ChecksSettings = Field(
        default_factory=ChecksSettings,
        description="What a program can check. Nothing, unless switched on.",
    )
    judge: JudgeSettings | None = Field(
        default=None, description="A model that grades answers in the background, on a sample."
    )
    parity: ParitySettings | None = Field(
        default=None, description="A model that compares answers with the largest candidate's."
    )
    auto: AutoSettings | None = Field(
        default=None,
        description="Takes what costs nothing, and buys the rest where it is needed. "
        "`labels: auto` says the same with all its defaults.",
    )
    implicit: ImplicitSettings | None = Field(
        default=None, description="What the next question says of the answer before it."
    )
    key_pull: Share = Field(
        default=0.005,
        description="How far one key may move the satisfaction of a service level in a day, as a "
        "share, by all labels that its clients cause; a key that makes much of the requests may "
        "move it further: see labels. What goes beyond is kept in the log alone. `1` switches it "
        "off.",
    )

    @model_validator(mode="before")
    @classmethod
    def _none_of_the_past(cls, given: Any) -> Any:
        for name in ("key_influence", "key_share"):
            if isinstance(given, dict) and name in given:
                raise ValueError(
                    f"`key_pull` in place of `{name}`: how far one key may move the satisfaction, "
                    "by feedback, checks and all else that its clients cause (0.005 unless set)"
                )
        return given

    @model_validator(mode="before")
    @classmethod
    def _auto_takes_what_is_free(cls, given: Any) -> Any:
        if isinstance(given, str):
            if given != "auto":
                raise ValueError("the word `auto`, or a section")
            given = {"auto": {}}
        if isinstance(given, dict) and given.get("auto") is not None:
            return {**FREE, **given}
        return given

    @model_validator(mode="after")
    def _each_kind_once(self) -> Self:
        if len(set(self.precedence)) < len(self.precedence):
            raise ValueError("each kind of labels once")
        return self

    @model_validator(mode="after")
    def _one_buys(self) -> Self:
        buying = [name for name in ("judge", "parity", "auto") if getattr(self, name) is not None]
        if len(buying) > 1:
            raise ValueError(f"one of {', '.join(buying)}: each of them buys labels")
        return self

    @property
    def buying(self) -> JudgeSettings | ParitySettings | AutoSettings | None:
        """The section by which labels are bought."""
        return self.judge or self.parity or self.auto

    @property
    def compares(self) -> bool:
        """Whether answers are compared with the largest candidate's."""
        return self.parity is not None or (self.auto is not None and self.auto.by == "parity")
