"""The procedure of a profile: warm up, measure idle, then every window of the grid."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import httpx

from litellm_messplus.energy.meter import (
    EndpointError,
    Meter,
    NotMeasuredError,
    Reading,
    plausible_watts,
)
from litellm_messplus.runtime.errors import ConfigurationError

# The measured loads: lengths of prompts and completions, at a few concurrencies.


@dataclass(frozen=True, slots=True)
class Cell:
    """One load: concurrent requests of about these lengths."""

    prompt_tokens: int
    completion_tokens: int
    concurrency: int


@dataclass(frozen=True, slots=True)
class Grid:
    """Every combination of lengths and concurrencies, ``repeats`` times, ``seconds`` or more each.

    A profile holds for one concurrency, since concurrent requests share the work: the middle one
    of those measured, unless ``serving_concurrency`` names another. Raises ConfigurationError,
    naming the option, for a grid from which the costs cannot be separated.
    """

    prompt_tokens: Sequence[int] = (64, 256, 1024)
    completion_tokens: Sequence[int] = (16, 64, 256)
    concurrency: Sequence[int] = (1, 4, 16)
    serving_concurrency: int | None = None
    repeats: int = 2
    seconds: float = 5.0
    idle_windows: int = 5

    def __post_init__(self) -> None:
        for name, values, least in (
            ("--prompt-tokens", self.prompt_tokens, 2),
            ("--completion-tokens", self.completion_tokens, 2),
            ("--concurrency", self.concurrency, 1),
        ):
            if len(set(values)) < max(least, len(values)) or min(values, default=0) < 1:
                allowed = f"at least {least} different numbers from 1 up, such as 4,16"
                raise ConfigurationError(name, ",".join(map(str, values)), allowed)
        if self.serving_concurrency not in (None, *self.concurrency):
            allowed = f"one of --concurrency: {', '.join(map(str, self.concurrency))}"
            raise ConfigurationError("--serving-concurrency", self.serving_concurrency, allowed)
        if not self.seconds > 0:
            raise ConfigurationError("--seconds", self.seconds, "a number above 0")
        if self.repeats < 1:
            raise ConfigurationError("--repeats", self.repeats, "a number from 1 up")
        if self.idle_windows < 3:
            raise ConfigurationError("--idle-windows", self.idle_windows, "a number from 3 up")

    @property
    def served(self) -> int:
        """The concurrency that the profile holds for."""
        middle = sorted(self.concurrency)[len(self.concurrency) // 2]
        return self.serving_concurrency or middle

    def cells(self) -> list[Cell]:
        """List every window to measure, shuffled, so that a warming device is not mistaken for an
        effect of length."""
        cells = [
            Cell(prompt, completion, concurrency)
            for prompt in self.prompt_tokens
            for completion in self.completion_tokens
            for concurrency in self.concurrency
        ] * self.repeats
        random.Random(0).shuffle(cells)
        return cells

    def warm_up(self) -> list[Cell]:
        """List the largest load at every concurrency: what the model cannot hold fails here."""
        prompt, completion = max(self.prompt_tokens), max(self.completion_tokens)
        return [Cell(prompt, completion, each) for each in sorted(self.concurrency)]


# Prompts of about a given length, no two of which begin alike.

WORDS = (
    *("apple", "bridge", "cloud", "dance", "earth", "forest", "garden", "house", "island", "jump"),
    *("kitchen", "letter", "mountain", "number", "ocean", "paper", "question", "river", "stone"),
    *("table", "under", "village", "water", "yellow", "zebra", "music", "night", "open", "quiet"),
)


class Prompts:
    """Random words, drawn anew in every run.

    A server with a prefix cache computes a prompt only once. Prompts that begin alike, or that an
    earlier run has sent, would be measured as nearly free.
    """

    def __init__(self) -> None:
        self._source = random.Random()
        self._tokens_per_word = 1.0

    def words(self, count: int) -> str:
        """Make a prompt of that many words."""
        return " ".join(self._source.choices(WORDS, k=count))

    def tokens(self, count: int) -> str:
        """Make a prompt of about that many tokens, by the last calibration."""
        return self.words(max(1, round(count / self._tokens_per_word)))

    def calibrate(self, words: int, tokens: int) -> None:
        """Record the server's token count of a prompt of that many words."""
        self._tokens_per_word = tokens / words


# Sending a load to an OpenAI-compatible endpoint, and counting its tokens.

CALIBRATION_WORDS = 48
SECONDS = 600.0
"""Timeout of one answer."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more answered requests, as counted by the endpoint.

    Prompt tokens from the endpoint's cache are excluded if it reports them.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


class Endpoint:
    """One model at `URL/completions`, where a prompt is the text and no chat template is added."""

    def __init__(self, client: httpx.AsyncClient, url: str, model: str) -> None:
        self._client, self._url, self._model = client, url.rstrip("/"), model
        self._prompts = Prompts()

    async def calibrate(self) -> None:
        """Send one short request, to learn the tokens per word. Raises EndpointError."""
        usage = await self._complete(self._prompts.words(CALIBRATION_WORDS), 1)
        self._prompts.calibrate(CALIBRATION_WORDS, max(1, usage.prompt_tokens))

    async def load(self, cell: Cell, seconds: float) -> Usage:
        """Keep ``cell.concurrency`` requests running until ``seconds`` are over, and end them all.

        Raises EndpointError if one of them fails, once the others have ended: aborted work could
        go on at the endpoint, in the next window.
        """
        until = time.monotonic() + seconds
        workers = (self._one_after_the_other(cell, until) for _ in range(cell.concurrency))
        total = Usage()
        for done in await asyncio.gather(*workers, return_exceptions=True):
            if isinstance(done, BaseException):
                raise done
            total += done
        return total

    async def _one_after_the_other(self, cell: Cell, until: float) -> Usage:
        done = Usage()
        while done.requests == 0 or time.monotonic() < until:
            prompt = self._prompts.tokens(cell.prompt_tokens)
            done += await self._complete(prompt, cell.completion_tokens)
        return done

    async def _complete(self, prompt: str, completion_tokens: int) -> Usage:
        body = {
            "model": self._model,
            "prompt": prompt,
            "temperature": 0,
            "max_tokens": completion_tokens,
            # vLLM's own option for an answer of exactly that length; others ignore it.
            "min_tokens": completion_tokens,
            "ignore_eos": True,
        }
        try:
            answer = await self._client.post(f"{self._url}/completions", json=body, timeout=SECONDS)
        except httpx.HTTPError as error:
            raise EndpointError(f"--url: {self._url} does not answer: {error!r}") from error
        if answer.status_code != httpx.codes.OK:
            raise EndpointError(
                f"{self._url} answered {self._model} with status {answer.status_code}: "
                f"{answer.text[:300]}. Is --model the served name, and do --prompt-tokens plus "
                "--completion-tokens fit its context?"
            )
        return self._usage(answer)

    def _usage(self, answer: httpx.Response) -> Usage:
        try:
            usage: Mapping[str, Any] = answer.json()["usage"]
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
            prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
            return Usage(1, int(prompt) - int(cached), int(completion))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EndpointError(
                f"{self._url} answers without `usage`, so it is unknown what its joules were for: "
                f"{answer.text[:300]}"
            ) from error


@dataclass(frozen=True, slots=True)
class Idle:
    """Power while no request runs, and its standard deviation from one window to the next.

    ``dropped``: the number of windows left out as negative or absurd.
    """

    watts: float
    noise_watts: float
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """The cell that was sent, the usage that the endpoint reports, and the reading; None for what
    failed."""

    cell: Cell
    usage: Usage | None
    reading: Reading


@dataclass(frozen=True, slots=True)
class Measured:
    """All windows of a grid, usable or not."""

    idle: Idle
    windows: tuple[MeasuredWindow, ...]


def steps(grid: Grid) -> int:
    """Count how often `measure` calls its ``advance``."""
    return len(grid.warm_up()) + grid.idle_windows + len(grid.cells())


async def measure(
    meter: Meter, endpoint: Endpoint, grid: Grid, advance: Callable[[], None] = lambda: None
) -> Measured:
    """Measure the whole grid; ``advance`` is called after every step.

    Idle power is that of a loaded, warm model without requests, so it is measured after the
    warm-up. A window in which a request fails stays without usage. Raises NotMeasuredError, and
    EndpointError if the endpoint already fails at the warm-up.
    """
    await _one_idle_window(meter, grid.seconds)  # fails here if the meter measures nothing
    await endpoint.calibrate()
    for cell in grid.warm_up():
        await endpoint.load(cell, grid.seconds)
        advance()
    idle = await _idle(meter, grid, advance)
    windows = []
    for cell in grid.cells():
        windows.append(await _one_window(meter, endpoint, cell, grid.seconds))
        advance()
    return Measured(idle, tuple(windows))


async def _idle(meter: Meter, grid: Grid, advance: Callable[[], None]) -> Idle:
    await asyncio.sleep(grid.seconds)  # a device lowers its clocks some time after its work
    readings = []
    for _ in range(grid.idle_windows):
        readings.append(await _one_idle_window(meter, grid.seconds))
        advance()
    return idle_of(readings, plausible_watts(meter))


def idle_of(readings: Sequence[Reading], plausible_watts: float) -> Idle:
    """Compute idle power from windows without requests.

    Raises NotMeasuredError if fewer than two are usable.
    """
    watts = [
        each.joules / each.seconds
        for each in readings
        if each.seconds > 0 and 0 <= each.joules <= plausible_watts * each.seconds
    ]
    if len(watts) < 2:
        raise NotMeasuredError(
            f"of {len(readings)} windows without requests {len(watts)} can be used: the others "
            f"were negative or above {plausible_watts:g} W, so the meter is not to be trusted"
        )
    return Idle(fmean(watts), stdev(watts), len(readings) - len(watts))


async def _one_idle_window(meter: Meter, seconds: float) -> Reading:
    window = meter.begin()
    await asyncio.sleep(seconds)
    return window.end()


async def _one_window(
    meter: Meter, endpoint: Endpoint, cell: Cell, seconds: float
) -> MeasuredWindow:
    window = meter.begin()
    try:
        usage = await endpoint.load(cell, seconds)
    except EndpointError:
        return MeasuredWindow(cell, None, window.end())
    return MeasuredWindow(cell, usage, window.end())
