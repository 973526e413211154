"""The cost of a model's calls in joules: fitted to measured windows, as `messplus profile` writes
it and the proxy reads it."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from litellm_messplus.energy.measure import Cell, Idle, MeasuredWindow
from litellm_messplus.energy.meter import FitError, Reading
from litellm_messplus.runtime.errors import ConfigurationError

# Joules per prompt token, per completion token and per request, from measured windows. Pure.
#
# A window's energy is modelled as linear in its work. The coefficients minimise the squared
# relative errors of the windows, and none is below zero.

Floats = NDArray[np.float64]
COEFFICIENTS = 3
LEAST_SAMPLES = 2 * COEFFICIENTS
TOLERANCE = 1e-3
"""Least singular value of the requests' lengths, each scaled to a norm of 1."""
ROUNDS = 3
"""Rounds of reweighting: errors are relative to the predictions of the previous round."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The work of one window, and its ``joules`` above idle; windows of one ``cell`` are
    repeats."""

    cell: Cell
    prompt_tokens: float
    completion_tokens: float
    requests: float
    joules: float


NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Costs(_Part):
    """Joules of each kind of work; or the standard error of each."""

    joules_per_prompt_token: NotNegative
    joules_per_completion_token: NotNegative
    joules_per_request: NotNegative


class Fitted(Costs):
    """The costs at one concurrency, how far off each may be, and how far off predictions are.

    ``relative_error`` is cross-validated: every cell of the grid is predicted by a fit to the
    others, and the root mean square of (predicted - measured) / measured is taken over all
    ``windows``. ``standard_errors`` are those of the same regression without the bounds at zero.
    """

    standard_errors: Costs
    relative_error: NotNegative
    windows: Count


def fit(samples: Sequence[Sample]) -> Fitted:
    """Fit the windows. Their joules must be above zero.

    Raises FitError for fewer than six windows, and for windows that do not differ enough to
    separate the three costs.
    """
    if len(samples) < LEAST_SAMPLES:
        raise FitError(
            f"{len(samples)} windows can be used, and {LEAST_SAMPLES} are the least: give more "
            "--repeats or a larger grid"
        )
    work, joules = _work(samples), _joules(samples)
    found = _coefficients(work, joules)
    return Fitted(
        **_by_name(found),
        standard_errors=Costs(**_by_name(_standard_errors(work, joules, found))),
        relative_error=_relative_error(samples),
        windows=len(samples),
    )


def _by_name(costs: Floats) -> dict[str, float]:
    return dict(zip(Costs.model_fields, costs.tolist(), strict=True))


def _work(samples: Sequence[Sample]) -> Floats:
    """Arrange the work in shape (windows, 3)."""
    rows = [(each.prompt_tokens, each.completion_tokens, each.requests) for each in samples]
    return np.array(rows, dtype=np.float64).reshape(-1, COEFFICIENTS)


def _require_difference(work: Floats) -> None:
    """Require windows that differ. Raises FitError if the mean request of every window is about the
    same mix."""
    per_request = work / work[:, 2:]
    size = np.linalg.norm(per_request, axis=0)
    if not size.all() or np.linalg.matrix_rank(per_request / size, tol=TOLERANCE) < COEFFICIENTS:
        raise FitError(
            "the windows do not distinguish prompt tokens, completion tokens and requests: give "
            "lengths that differ more in --prompt-tokens and --completion-tokens, and see that "
            "the endpoint answers in them"
        )


def _joules(samples: Sequence[Sample]) -> Floats:
    return np.array([each.joules for each in samples], dtype=np.float64)


def _coefficients(work: Floats, joules: Floats) -> Floats:
    """Fit by non-negative least squares of the relative errors, by iterated reweighting."""
    _require_difference(work)
    scale = joules
    for _ in range(ROUNDS):
        found = _non_negative(work / scale[:, None], joules / scale)
        scale = _scale(work @ found, joules)
    return found


def _scale(predicted: Floats, joules: Floats) -> Floats:
    """Return what errors are relative to: the prediction if it is positive."""
    return np.where(predicted > 0, predicted, joules)


def _non_negative(work: Floats, target: Floats) -> Floats:
    """Find the exact solution, by trying every choice of the three coefficients that are above
    zero."""
    best, least = np.zeros(COEFFICIENTS), float(target @ target)
    for count in range(1, COEFFICIENTS + 1):
        for chosen in map(list, combinations(range(COEFFICIENTS), count)):
            part, *_ = np.linalg.lstsq(work[:, chosen], target)
            rest = target - work[:, chosen] @ part
            if (part >= 0).all() and float(rest @ rest) < least:
                best, least = np.zeros(COEFFICIENTS), float(rest @ rest)
                best[chosen] = part
    return best


def _standard_errors(work: Floats, joules: Floats, found: Floats) -> Floats:
    """Return the standard errors, of shape (3,)."""
    predicted = work @ found
    scale = _scale(predicted, joules)
    scaled, rest = work / scale[:, None], (joules - predicted) / scale
    variance = float(rest @ rest) / (len(joules) - COEFFICIENTS)
    errors: Floats = np.sqrt(variance * np.diag(np.linalg.pinv(scaled.T @ scaled)))
    return errors


def _relative_error(samples: Sequence[Sample]) -> float:
    squares: list[float] = []
    for cell in dict.fromkeys(sample.cell for sample in samples):
        without = [sample for sample in samples if sample.cell != cell]
        held_out = [sample for sample in samples if sample.cell == cell]
        found = _coefficients(_work(without), _joules(without))
        measured = _joules(held_out)
        squares += list(((_work(held_out) @ found - measured) / measured) ** 2)
    return float(np.sqrt(np.mean(squares)))


# The usable windows: the others are dropped, and counted by reason.

NOISE_DEVIATIONS = 3.0
"""Standard deviations of idle power within which a window cannot be distinguished from idle."""


class Fault(StrEnum):
    """The reasons not to use a reading."""

    FAILED = "a request failed"
    NO_TIME = "no time passed"
    ABSURD = "more power than plausible"
    BELOW_IDLE = "less energy than idle"
    IDLE = "not to be told from idle"


@dataclass(frozen=True, slots=True)
class Screened:
    """Usable samples, with idle energy subtracted, and the number of dropped ones by reason."""

    samples: tuple[Sample, ...]
    dropped: dict[str, int]


def screened(windows: Iterable[MeasuredWindow], idle: Idle, plausible_watts: float) -> Screened:
    """Keep the windows that are usable for a fit."""
    samples, dropped = [], Counter[str]()
    for window in windows:
        reason = (
            Fault.FAILED if window.usage is None else fault(window.reading, idle, plausible_watts)
        )
        if reason is not None or window.usage is None:
            dropped[str(reason)] += 1
            continue
        samples.append(
            Sample(
                window.cell,
                window.usage.prompt_tokens,
                window.usage.completion_tokens,
                window.usage.requests,
                above_idle(window.reading, idle),
            )
        )
    return Screened(tuple(samples), dict(sorted(dropped.items())))


def above_idle(reading: Reading, idle: Idle) -> float:
    """Subtract idle power from the joules of a reading."""
    return reading.joules - idle.watts * reading.seconds


def fault(reading: Reading, idle: Idle, plausible_watts: float) -> Fault | None:
    """Return why a reading is unusable; None if it is usable."""
    if not (reading.seconds > 0 and math.isfinite(reading.seconds)):
        return Fault.NO_TIME
    if not reading.joules <= plausible_watts * reading.seconds:  # true of NaN too
        return Fault.ABSURD
    joules, noise = above_idle(reading, idle), NOISE_DEVIATIONS * idle.noise_watts * reading.seconds
    if joules < -noise or reading.joules < 0:
        return Fault.BELOW_IDLE
    return None if joules > noise else Fault.IDLE


# The file.

KEY = "model_info.messplus.energy_profile"
MAX_RELATIVE_ERROR = 0.25
"""Relative error above which a profile is refused."""

HEADER = """\
# What a call to this model costs, measured by `messplus profile`. Joules are above idle power.
# To be named in proxy_config.yaml, under model_info: {messplus: {energy_profile: THIS FILE}}.
"""


FIRST = (
    *("format", "model", "concurrency", "joules_per_prompt_token", "joules_per_completion_token"),
    *("joules_per_request", "joules_per_cached_token", "relative_error"),
)
"""Keys at the top of the file, for its readers."""


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
        """Write it as readable YAML."""
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
