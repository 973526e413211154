"""What each policy reads from the settings, and which of it a service level may set apart.

A new policy adds its classes and its name here, and changes nothing in the schema.
"""

from typing import Annotated, Literal

from pydantic import Field

from litellm_messplus.settings.labels import NotNegative, Positive, Settings

PolicyName = Literal["adaptive", "paper"]
Confidence = Annotated[float, Field(ge=0.5, lt=1.0)]


class LatencySettings(Settings):
    """The limit on how long a request may take."""

    p95_seconds: Positive = Field(
        description="Seconds, from the start of a call to its end, that at most 5 % of the "
        "requests may take longer than.",
    )


Failures = Literal["apart", "count"]


class FailureSettings(Settings):
    """The meaning of failed requests for a promise."""

    failures: Failures = Field(
        default="apart",
        description="What a request that failed (no answer of an endpoint, no healthy deployment, "
        "a deadline) is to the promise. `apart`: a figure of its own, and none of satisfaction. "
        "`count`: an unsatisfied request, of which an outage is repaid within bounds: see control.",
    )


class LimitSettings(Settings):
    """The limits beside alpha: none, unless they are set."""

    latency: LatencySettings | None = Field(
        default=None,
        description="How long the requests of a service level may take: see limits.",
    )
    budget_per_day: Positive | None = Field(
        default=None,
        description="What the calls of a service level may cost in a day (UTC), in the zoo's unit "
        "of cost, those that no user sees included. Comes before alpha.",
    )


class AdaptiveSettings(LimitSettings):
    """The trust that a zoo's labels are given, and its limits beside alpha."""

    margin: NotNegative = Field(
        default=0.0,
        description="Under `adaptive`: standard errors of the satisfaction rate to hold on top of "
        "alpha.",
    )
    confidence: Confidence | None = Field(
        default=None,
        description="With which confidence the certificate is to say `kept`: the aim is raised by "
        "what its lower bound needs to reach alpha.",
    )
    response_bias: Positive | Literal["audit"] = Field(
        default=1.0,
        description="How many times as often unsatisfied users answer as satisfied ones. At 2, a "
        "satisfied verdict stands for twice as many requests as an unsatisfied one. "
        "`audit` estimates it from the requests that the zoo's judge grades.",
    )
    label_noise: Annotated[float, Field(ge=0.0, lt=0.5)] = Field(
        default=0.0,
        description="The probability that a verdict is wrong. The zoo then aims at the share of "
        "satisfied verdicts that shows when alpha is held in truth.",
    )


class PaperSettings(Settings):
    """Algorithm 1 of MESS+, and the SGD of its predictor. Defaults are the paper's."""

    V: Positive = Field(
        default=1e-4,
        description="Under `paper`: the weight of cost against the virtual queue, per unit of "
        "cost. The default is the paper's and per joule: in another unit, set "
        "another.",
    )
    c: NotNegative = Field(
        default=0.1,
        description="Under `paper`: scales the exploration probability. At 0, only the first "
        "request of a service level is explored.",
    )
    learning_rate: Positive = Field(default=0.06, description="Under `paper`: the step of the SGD.")
    momentum: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.9, description="Under `paper`: the momentum of the SGD."
    )
    weight_decay: NotNegative = Field(
        default=0.01,
        description="Under `paper`: its mu, the strength of the regularisation of the SGD.",
    )
    exploration_wait_seconds: Positive = Field(
        default=600.0,
        description="Under `paper`: how long the predictor waits for the labels of all of an "
        "exploration's calls, before it learns from those that are there.",
    )


class FailurePromise(Settings):
    """The meaning of failed requests for one service level."""

    failures: Failures | None = Field(
        default=None, description="What a request that failed is to this level's promise."
    )


class AdaptivePromise(LimitSettings):
    """Settings that a service level may set apart under `adaptive`."""

    margin: NotNegative | None = Field(
        default=None, description="Under `adaptive`: the margin of this level."
    )
    confidence: Confidence | None = Field(
        default=None, description="With which confidence the certificate is to say `kept`."
    )


class PaperPromise(Settings):
    """Settings that a service level may set apart under `paper`."""

    V: Positive | None = Field(
        default=None, description="Under `paper`: the weight of cost at this level."
    )
    c: NotNegative | None = Field(
        default=None, description="Under `paper`: how much this level explores."
    )


POLICIES: dict[PolicyName, type[Settings]] = {"adaptive": AdaptiveSettings, "paper": PaperSettings}
"""By name: the settings that a policy reads, and no other does."""


class PolicySettings(FailureSettings, AdaptiveSettings, PaperSettings):
    """Settings of every policy: a zoo has the ones that its policy reads, and what all read."""


class PolicyPromise(FailurePromise, AdaptivePromise, PaperPromise):
    """Settings of every policy that a service level may set apart."""


def read_by_others(policy: PolicyName, given: set[str]) -> dict[str, PolicyName]:
    """Return the settings of ``given`` that ``policy`` does not read, each with its reader."""
    own = POLICIES[policy].model_fields
    return {
        name: reader
        for reader, settings in POLICIES.items()
        for name in sorted(given & settings.model_fields.keys() - own.keys())
    }
