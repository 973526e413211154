"""A slow encoder in a process of its own, so that the event loop keeps its core.

In a thread of the proxy it would share Python's lock with the event loop, and on busy cores the
scheduler's priority, too."""

import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing import Pipe, active_children
from multiprocessing.connection import Connection
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Lock
from typing import Any

import numpy as np

from litellm_messplus.encoders.batcher import WARM_UP, Encoded
from litellm_messplus.encoders.bounds import OF_256_TOKENS
from litellm_messplus.encoders.lookup import KEY, Kind, build_encoder, kind_of, tried
from litellm_messplus.energy.measure import Idle, idle_of
from litellm_messplus.energy.meter import Meter, NotMeasuredError, Reading, plausible_watts
from litellm_messplus.energy.profile import above_idle, fault
from litellm_messplus.energy.zeus import open_meter
from litellm_messplus.prediction.encoder import Conversation, Encoder, FeatureRows
from litellm_messplus.runtime.counters import logger
from litellm_messplus.runtime.errors import ConfigurationError

# The power of encoding above idle: measured once, in the encoder's process, before it serves.
#
# The counters of a GPU update about ten times a second, and a batch takes less. So its joules are
# its duration times the power that was measured over seconds of encoding.

SECONDS = 2.0
"""Least seconds of each window, and of the pause before them: clocks slow down late after work."""
IDLE_WINDOWS = 3
SIZES_ON_GPU = (1, 16)
"""Prompts in a batch. One alone leaves most of a GPU idle, and draws far less than a full batch."""
SIZES_ON_CPU = (1,)
"""Prompts in a batch: a busy core draws the same power at any batch size."""


@dataclass(frozen=True, slots=True)
class Consumption:
    """The power of an encoder: ``watts`` above idle at batches of ``sizes`` prompts, per second of
    ``clock``.

    On CPUs, if ``gpus`` is empty, the clock is the CPU time of this process: while it waits for a
    core, other processes use it. ``meter`` names the sensors.
    """

    gpus: Sequence[int]
    sizes: Sequence[int]
    watts: Sequence[float]
    clock: Callable[[], float]
    meter: str

    def joules(self, prompts: int, seconds: float) -> float:
        """Estimate the joules of one batch from its size and its seconds of the clock."""
        return seconds * float(np.interp(prompts, self.sizes, self.watts))

    def __str__(self) -> str:
        parts = zip(self.watts, self.sizes, strict=True)
        watts = ", ".join(f"{each:.3g} W at {size} a batch" for each, size in parts)
        return f"{watts}, above idle ({self.meter})"


def measured(encoder: Encoder, gpus: Sequence[int]) -> Consumption:
    """Measure an encoder that computes on these GPUs, or on CPUs if there are none.

    Takes seconds if there is a sensor, else almost no time. Raises NotMeasuredError.
    """
    try:
        with _no_process_left():
            return _measured(encoder, gpus)
    except NotMeasuredError:
        raise
    except Exception as error:  # of Zeus, a driver or the encoder: it can serve nevertheless
        raise NotMeasuredError(repr(error)) from error


def _measured(encoder: Encoder, gpus: Sequence[int]) -> Consumption:
    meter = open_meter(gpus=gpus, with_cpu=not gpus)
    sizes = SIZES_ON_GPU if gpus else SIZES_ON_CPU
    clock = time.perf_counter if gpus else time.process_time
    batches = [_batches(size) for size in sizes]
    for each in batches:  # idle is the power with a loaded, warm encoder
        encoder.encode(next(each))
    time.sleep(SECONDS)
    idle = idle_of([_resting(meter) for _ in range(IDLE_WINDOWS)], plausible_watts(meter))
    watts = [_watts(meter, encoder, each, idle, clock) for each in batches]
    return Consumption(gpus, sizes, watts, clock, f"{meter.source}: {', '.join(meter.sensors)}")


def _batches(size: int) -> Iterator[list[str]]:
    """Yield batches without repeated texts: an encoder might cache them."""
    for number in count():
        yield [f"{size}, {number}, {place}. {WARM_UP}" for place in range(size)]


def _resting(meter: Meter) -> Reading:
    window = meter.begin()
    time.sleep(SECONDS)
    return window.end()


def _watts(
    meter: Meter,
    encoder: Encoder,
    batches: Iterator[list[str]],
    idle: Idle,
    clock: Callable[[], float],
) -> float:
    """Measure the watts above idle, per second of the clock. Raises NotMeasuredError."""
    window, started, ends = meter.begin(), clock(), time.perf_counter() + SECONDS
    while time.perf_counter() < ends:
        encoder.encode(next(batches))
    seconds, found = clock() - started, window.end()
    wrong = fault(found, idle, plausible_watts(meter))
    if wrong is not None or seconds <= 0.0:
        raise NotMeasuredError(f"while it encoded, {meter.source} read {wrong or 'no time'}")
    return above_idle(found, idle) / seconds


@contextmanager
def _no_process_left() -> Iterator[None]:
    """End the processes that are started within.

    Zeus watches the CPUs' counters in one that would outlive this process if it is killed.
    """
    before = active_children()
    try:
        yield
    finally:
        for child in active_children():
            if child not in before:
                child.kill()
                child.join()


# The process.

# The connection between the proxy and its encoder's process.


def send(line: "Connection[Any, Any]", what: object) -> None:
    """Send an object to `recv` at the other end. Raises OSError if that end is closed.

    It replaces the connection's own `send`: if that fails, the traceback keeps a view of the data's
    buffer, and CPython 3.12.1 crashes when both are collected as garbage.
    """
    line.send_bytes(pickle.dumps(what))


WORKER = "litellm_messplus.encoders.worker"
START_SECONDS = 600.0
"""Longest time for loading, as a disk may be slow, and for measuring the power of encoding."""
PATIENCE_SECONDS = 120.0
"""Longest time for a batch: it takes seconds without a GPU, and ten times as long on busy cores."""
REST_SECONDS = 1.0
"""Pause before a lost process is restarted; doubled after each one that encoded nothing."""
LONGEST_REST_SECONDS = 60.0
ENDING_SECONDS = 1.0
"""Longest time for a process that has closed its connection to end by itself."""


class EncoderProcessError(Exception):
    """Error of an encoder that failed in its process, or of a missing process."""


class ProcessEncoder:
    """The encoder of a setting in a child process; ``read`` runs in this one, which gets the
    requests.

    A process that ends, or does not reply within ``patience_seconds``, is lost: `encode` raises
    until another one is ready. It ends with the process that it serves, however that ends.
    """

    is_fast = False

    def __init__(
        self,
        setting: str,
        read: Callable[[Conversation], str],
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """Wait until the encoder is loaded. Raises ConfigurationError if it cannot be."""
        self._setting = setting
        self._read = read
        self._patience_seconds = patience_seconds
        self._lock = Lock()
        self._rest_seconds = REST_SECONDS
        self._start_at = 0.0
        self._is_closed = False
        self._child: _Child | None = _Child(setting)
        self._is_ready = True
        self.name, self.dimension, self._consumption = _loaded(setting, self._child)
        logger.info("what the encoder consumes: %s", self._consumption)

    def read(self, conversation: Conversation) -> str:
        return self._read(conversation)

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        """Encode as `encode_metered` does, without the joules."""
        return self.encode_metered(texts).rows

    def encode_metered(self, texts: Sequence[str]) -> Encoded:
        """Encode in the process, which measures joules if it can. For one thread at a time.

        Raises EncoderProcessError, at once if no process can encode.
        """
        child = self._ready_child()
        try:
            reply = child.ask(list(texts), self._patience_seconds)
        except (EOFError, OSError) as error:
            raise self._lose(child, error) from error
        if isinstance(reply, tuple):
            words, trace = reply
            failure = EncoderProcessError(words)
            failure.add_note(trace)
            raise failure
        self._rest_seconds = REST_SECONDS
        found: Encoded = reply
        return found

    def close(self) -> None:
        """End the process, even during a batch; callable from any thread."""
        with self._lock:
            self._is_closed = True
            child, self._child = self._child, None
        if child is not None:
            child.end()

    def _ready_child(self) -> "_Child":
        with self._lock:
            if self._is_closed:
                raise EncoderProcessError("it was closed")
            if self._child is None and time.monotonic() < self._start_at:
                raise EncoderProcessError("its process was lost, and is started again soon")
            if self._child is None:
                self._child, self._is_ready = _Child(self._setting, self._consumption), False
            child = self._child
        if not self._is_ready:
            self._take_back(child)
        return child

    def _take_back(self, child: "_Child") -> None:
        """Resume with a restarted process once it is ready. Raises until then."""
        try:
            found = child.receive(0.0)
        except TimeoutError as error:
            if child.age() > START_SECONDS:
                raise self._lose(child, error) from error
            raise EncoderProcessError("its process is being started again") from error
        except (EOFError, OSError) as error:
            raise self._lose(child, error) from error
        # Other weights have other features, for which nothing was learned.
        if found[:-1] != ("ready", self.name, self.dimension):
            raise self._lose(child, EncoderProcessError(f"it does not come up as it was: {found}"))
        self._is_ready = True
        logger.warning("the encoder's process is there again")

    def _lose(self, child: "_Child", error: Exception) -> EncoderProcessError:
        """End what is left of the process, and return an error with the cause."""
        words = f"its process {_end_of(child, error)} ({error!r})"
        with self._lock:
            self._child = None
            rest, self._start_at = self._rest_seconds, time.monotonic() + self._rest_seconds
            self._rest_seconds = min(2.0 * rest, LONGEST_REST_SECONDS)
            if not self._is_closed:
                logger.warning("the encoder is lost: %s; started again after %g s", words, rest)
        return EncoderProcessError(words)


class _Child:
    """A child process, and the connection to it. It has the module search path of this one."""

    def __init__(self, setting: str, known: Consumption | str | None = None) -> None:
        self._started = time.monotonic()
        self._line, theirs = Pipe()
        path = os.pathsep.join(place or os.curdir for place in sys.path)
        send(self._line, known)
        with theirs:  # open in the child only, so that it closes with the child
            self._process = Popen(
                [sys.executable, "-P", "-m", WORKER, setting, str(theirs.fileno())],
                stdin=PIPE,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": path},
            )

    def age(self) -> float:
        """Return the seconds since the start of the process."""
        return time.monotonic() - self._started

    def ask(self, texts: list[str], seconds: float) -> Any:
        """Send the texts, and return the reply. Raises as `receive` does, and OSError."""
        send(self._line, texts)
        return self.receive(seconds)

    def receive(self, seconds: float) -> Any:
        """Receive the next message. Raises TimeoutError if none came in that time, and EOFError or
        OSError if the process is gone."""
        if not self._line.poll(seconds):
            raise TimeoutError(f"it sent nothing for {seconds:.0f} s")
        return self._line.recv()

    def end(self, seconds: float = 0.0) -> str:
        """Kill the process unless it ends within that time, and describe its end. The connection
        stays open, as a thread may still read from it."""
        with suppress(TimeoutExpired):
            self._process.wait(seconds)
        self._process.kill()
        status = self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        return f"ended with status {status}"


def _end_of(child: _Child, error: Exception) -> str:
    return child.end(0.0 if isinstance(error, TimeoutError) else ENDING_SECONDS)


def _loaded(setting: str, child: _Child) -> tuple[str, int, Consumption | str]:
    """Receive the encoder's name, dimension, and consumption or why it is unknown.

    Raises ConfigurationError if it could not be loaded.
    """
    try:
        kind, *rest = child.receive(START_SECONDS)
    except (EOFError, OSError) as error:
        allowed = f"an encoder that loads in a process of its own; this {_end_of(child, error)}"
        raise ConfigurationError(KEY, setting, f"{allowed} ({error!r})") from error
    if kind == "refused":
        child.end()
        raise ConfigurationError(*rest)
    name, dimension, consumption = rest
    return name, dimension, consumption


# A fast encoder runs in the event loop, a slow one in its own process.


def load_for_requests(setting: str) -> Encoder:
    """Load an encoder as `load_encoder` does, a slow one in a process of its own.

    For a slow built-in one, this process loads nothing, not even its libraries. A third-party
    encoder is built here as well: it states whether it is fast, and reads the conversations. Raises
    ConfigurationError.
    """
    if kind_of(setting) in (Kind.ONNX, Kind.TRANSFORMER):
        return ProcessEncoder(setting, OF_256_TOKENS.read)
    encoder = build_encoder(setting)
    if encoder.is_fast:
        return tried(setting, encoder)
    return ProcessEncoder(setting, encoder.read)
