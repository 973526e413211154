"""What a model's calls cost in joules, as `messplus profile` writes it and the proxy reads it."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from litellm_messplus.errors import ConfigurationError

KEY = "model_info.messplus.energy_profile"
MAX_RELATIVE_ERROR = 0.25
"""A profile whose predictions are further off is refused."""

NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]

HEADER = """\
# What a call to this model costs, measured by `messplus profile`. Joules are above idle power.
# To be named in proxy_config.yaml, under model_info: {messplus: {energy_profile: THIS FILE}}.
"""


FIRST = (
    *("format", "model", "concurrency", "joules_per_prompt_token", "joules_per_completion_token"),
    *("joules_per_request", "joules_per_cached_token", "relative_error"),
)
"""What a reader of the file looks for."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Costs(_Part):
    """Joules of each kind of work; or the standard error of each."""

    joules_per_prompt_token: NotNegative
    joules_per_completion_token: NotNegative
    joules_per_request: NotNegative


class Fitted(Costs):
    """The costs at one concurrency, how far off each may be, and how far off predictions are.

    ``relative_error``: root mean square over the windows, each predicted by a fit without its cell
    of the grid. ``windows``: those that the fit used.
    """

    standard_errors: Costs
    relative_error: NotNegative
    windows: Count


class AtConcurrency(Fitted):
    """The same, measured with so many requests at a time."""

    concurrency: Annotated[int, Field(ge=1)]


class GridOfProfile(_Part):
    """The loads that were measured."""

    prompt_tokens: tuple[int, ...]
    completion_tokens: tuple[int, ...]
    concurrency: tuple[int, ...]
    repeats: int
    seconds: float


class EnergyProfile(AtConcurrency):
    """A model's costs at one concurrency, where they come from, and those at the others.

    ``idle_watts`` of all ``sensors`` together are subtracted; ``idle_noise_watts`` is their
    standard deviation between windows. ``dropped`` counts the windows, of every concurrency, that
    could not be used, by why. ``joules_per_cached_token`` is not measured, for no window has a
    cached token: an operator may write it in.
    """

    format: Literal[1] = 1
    model: str
    endpoint: str
    meter: str
    sensors: tuple[str, ...]
    measured_at: datetime
    idle_watts: NotNegative
    idle_noise_watts: NotNegative
    dropped: dict[str, Count]
    grid: GridOfProfile
    other_concurrencies: tuple[AtConcurrency, ...] = ()
    joules_per_cached_token: NotNegative | None = None

    def joules(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Estimate the energy of one call, above idle."""
        return (
            self.joules_per_request
            + self.joules_per_prompt_token * prompt_tokens
            + self.joules_per_completion_token * completion_tokens
        )

    def write(self, path: Path) -> None:
        """Write it as YAML that a person can read."""
        unknown = {"joules_per_cached_token"} if self.joules_per_cached_token is None else set()
        found = _figures_first(self.model_dump(mode="json", exclude=unknown))
        others = [_figures_first(each) for each in found.pop("other_concurrencies")]
        content = {**found, "other_concurrencies": others}
        text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=100)
        path.write_text(HEADER + text, "utf-8")


def _figures_first(found: dict[str, Any]) -> dict[str, Any]:
    first = [name for name in FIRST if name in found]
    return {name: found[name] for name in (*first, *(each for each in found if each not in first))}


def load_profile(path: str | Path, *, model: str) -> EnergyProfile:
    """Load the profile in a file, which must be one of ``model``.

    Raises ConfigurationError for a file that is missing or no profile, for a profile of another
    model, and for one whose relative error is above MAX_RELATIVE_ERROR.
    """
    profile = _parse(Path(path))
    if profile.model != model:
        raise ConfigurationError(
            KEY,
            f"{path}, a profile of {profile.model}",
            f"a profile of {model}, made by {_made(model)}",
        )
    if profile.relative_error > MAX_RELATIVE_ERROR:
        raise ConfigurationError(
            KEY,
            f"{path}, whose relative error is {profile.relative_error:.3g}",
            f"at most {MAX_RELATIVE_ERROR:g}: profile again with more --seconds or --repeats, and "
            "nothing else on the device",
        )
    return profile


def _parse(path: Path) -> EnergyProfile:
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(
            KEY, f"{path} ({reason})", f"a file that `messplus profile` wrote ({_made('MODEL')})"
        ) from error
    if not isinstance(found, Mapping):
        raise ConfigurationError(KEY, str(path), "a file that `messplus profile` wrote")
    try:
        return EnergyProfile.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigurationError(f"{KEY}, {path}, {where}", first["input"], first["msg"]) from error


def _made(model: str) -> str:
    return f"messplus profile --model {model} --url URL --out FILE"
