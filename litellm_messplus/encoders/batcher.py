"""A thread that encodes prompts in batches, for requests that wait in an event loop."""

import asyncio
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass

from litellm_messplus.prediction.encoder import Encoder, FeatureRows, Features

# The result of an encoder, and its energy.


@dataclass(frozen=True, slots=True)
class Encoded:
    """The features of texts, ``rows`` of shape (texts, dimension), and the ``joules`` above idle
    that they took together; None (not zero) if not measured."""

    rows: FeatureRows
    joules: float | None = None


Encode = Callable[[Sequence[str]], Encoded]


def unmeasured(encoder: Encoder) -> Encode:
    """Wrap the encoder's `encode`, with unknown joules."""
    return lambda texts: Encoded(encoder.encode(texts))


# The lateness of an event loop for due callbacks: its waiters are woken late by as much.

LOOK_SECONDS = 0.005
"""Delay of a look, so that it falls into whatever the loop is doing then."""
LOOKS = 100
SHARE = 0.9
"""Quantile of the looks that counts as the lateness: the worst are too rare to plan for."""
SECONDS = 10.0
"""Seconds for which a look counts."""


class Lateness:
    """The lateness of the event loop, measured again at each query, so under the current load."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._found: deque[tuple[float, float]] = deque(maxlen=LOOKS)

    def seconds(self) -> float:
        """Return the quantile `SHARE` of recent looks, in seconds; 0 without any. Call it in the
        running event loop."""
        now = self._clock()
        loop, due = asyncio.get_running_loop(), now + LOOK_SECONDS
        # Like a timeout: one turn of the loop to find it, and one to wake the waiter.
        loop.call_later(LOOK_SECONDS, loop.call_soon, self._look, due)
        while self._found and self._found[0][0] < now - SECONDS:
            self._found.popleft()
        found = sorted(late for _, late in self._found)
        return found[int(SHARE * len(found))] if found else 0.0

    def _look(self, due: float) -> None:
        now = self._clock()
        self._found.append((now, now - due))


BATCHES_WAITING = 8
"""Most full batches that may wait."""
BATCHES_REMEMBERED = 32
"""Batches whose best shows how fast the encoder can be: the others may have been small."""
REST = 9.0
"""Pause before an encoder that is too slow is tried again, in multiples of its last duration."""
WARM_UP = "Sort the numbers below, and say in one sentence how you did it. " * 12


@dataclass(frozen=True, slots=True)
class Encoding:
    """A prompt's features, and the joules above idle that they took; None if not measured."""

    features: Features
    joules: float | None

    def again(self) -> "Encoding":
        """Return the same encoding for another request, which uses no further joules."""
        return self if self.joules is None else Encoding(self.features, 0.0)


@dataclass(slots=True, eq=False)
class Prompt:
    """A text in the queue. ``deadline`` is the latest of its waiting requests, by the batcher's
    clock; ``key`` is the hash of its content."""

    text: str
    key: bytes
    deadline: float
    encoding: asyncio.Future[Encoding | None]


@dataclass(frozen=True, slots=True)
class Batch:
    """Prompts that were encoded together, in ``seconds``, with the result or the exception."""

    prompts: Sequence[Prompt]
    result: Encoded | Exception
    seconds: float


class DeadlinePassedError(Exception):
    """Error of a prompt that was not encoded, as no request waited for it any more."""


@dataclass(eq=False, repr=False)
class Batcher:
    """A queue of prompts, encoded in the order of arrival; ``deliver`` is called in the prompts'
    event loop.

    A batch has at most ``largest`` prompts, and no more than are expected to be done by the first
    one's deadline. It waits for others for ``wait_seconds`` at most. A prompt that is not expected
    in time behind the queue is neither waited for nor encoded; but if even the first in an empty
    queue would be late, one is tried now and then.
    """

    encode: Encode
    deliver: Callable[[Batch], None]
    _: KW_ONLY
    largest: int
    wait_seconds: float
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self._queue: queue.Queue[Prompt | None] = queue.Queue(BATCHES_WAITING * self.largest)
        self._recent: deque[float] = deque(maxlen=BATCHES_REMEMBERED)
        self._seconds_each = 0.0
        self._in_work = 0
        self._try_again = 0.0
        self._is_closing = False
        self._is_warm = True
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread with a text of its own, to warm it up and measure its speed. No prompt
        is accepted before that."""
        self._is_warm = False
        self._launch(self._run_warm)

    def put(self, prompt: Prompt) -> bool:
        """Put a prompt in the queue, and tell whether to wait for it: not if too many wait already,
        if the encoder is only tried, or if the batcher is closed."""
        ahead = self._queue.qsize() + self._in_work
        is_in_time = self._is_warm and ahead < self._done_by(prompt.deadline)
        is_tried = self._is_warm and not ahead and self.clock() >= self._try_again
        if self._is_closing or not (is_in_time or is_tried):
            return False
        self._launch(self._run)
        try:
            self._queue.put_nowait(prompt)
        except queue.Full:
            return False
        return is_in_time

    def close(self, seconds: float | None = None) -> None:
        """Return when the thread has ended, or after that time; waiting prompts are not encoded.
        Blocks."""
        self._is_closing = True
        with suppress(queue.Full):  # else it does not wait for a prompt
            self._queue.put_nowait(None)
        if self._thread is not None:
            self._thread.join(seconds)

    def _launch(self, run: Callable[[], None]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=run, name="messplus-encoder", daemon=True)
            self._thread.start()

    def _run_warm(self) -> None:
        for _ in range(2):  # the first takes longer than later ones
            self._timed((WARM_UP,))
        self._is_warm = True
        self._run()

    def _run(self) -> None:
        while not self._is_closing:
            first = self._next(None)
            if first is not None:
                self._work(self._gather(first))

    def _gather(self, first: Prompt) -> list[Prompt]:
        ends = self.clock() + self.wait_seconds
        room = min(self.largest, self._done_by(first.deadline))
        prompts = [first]
        while len(prompts) < room:
            prompt = self._next(max(0.0, ends - self.clock()))
            if prompt is None:
                break
            prompts.append(prompt)
        return prompts

    def _next(self, timeout: float | None) -> Prompt | None:
        """Return the next prompt whose deadline is to come; None if there is none in that time."""
        while True:
            try:
                prompt = self._queue.get(timeout=timeout)
            except queue.Empty:
                return None
            if prompt is None or self._is_closing:
                return None
            if prompt.deadline > self.clock():
                return prompt
            self._hand_back(Batch((prompt,), DeadlinePassedError(), 0.0))

    def _done_by(self, deadline: float) -> int:
        """Return the number of prompts that the encoder can do by the deadline."""
        seconds = deadline - self.clock()
        return int(seconds / self._seconds_each) if self._seconds_each else sys.maxsize

    def _work(self, prompts: Sequence[Prompt]) -> None:
        result, seconds = self._timed([prompt.text for prompt in prompts])
        self._hand_back(Batch(prompts, result, seconds))

    def _timed(self, texts: Sequence[str]) -> tuple[Encoded | Exception, float]:
        self._in_work = len(texts)
        started = self.clock()
        result: Encoded | Exception
        try:
            result = self.encode(texts)
        except Exception as error:
            result = error
        seconds = self.clock() - started
        if not isinstance(result, Exception):  # a failure may come at once
            self._recent.append(seconds / len(texts))
            self._seconds_each = min(self._recent)
        self._try_again = started + (1.0 + REST) * seconds
        self._in_work = 0
        return result, seconds

    def _hand_back(self, batch: Batch) -> None:
        with suppress(RuntimeError):  # the loop is closed: no request waits
            batch.prompts[0].encoding.get_loop().call_soon_threadsafe(self.deliver, batch)
