"""Features for the proxy: at once from a fast encoder, in a deadline from a slow one's thread."""

import asyncio
import queue
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from threading import Thread

import numpy as np

from litellm_messplus.core.encoder import Conversation, Encoder, FeatureRows, Features
from litellm_messplus.runtime.bounded import Bounded

MOST_AT_ONCE = 32
"""Most prompts of a batch."""
MOST_WAITING = 256
"""Most prompts that wait or are being encoded."""
CACHED = 10_000
"""Newest texts whose features are kept."""
CLOSE_SECONDS = 5.0
"""Longest wait of a stop for a batch in progress."""


@dataclass(slots=True)
class FeatureStatistics:
    """The counts since the start: ``seconds`` are the encoder's own, for ``prompts`` in
    ``batches``.

    ``late`` and ``overloaded`` count requests that went on without features, after waiting or at
    once, ``failures`` prompts that could not be encoded, and ``cache_hits`` requests answered from
    the cache.
    """

    prompts: int = 0
    batches: int = 0
    seconds: float = 0.0
    cache_hits: int = 0
    late: int = 0
    overloaded: int = 0
    failures: int = 0


_Encoded = tuple[FeatureRows | Exception, float]
"""The features of a batch, or why there are none, and the seconds that it took."""


@dataclass(slots=True, eq=False)
class _Prompt:
    """A text in the queue. ``deadline`` is the latest of its waiting requests, by the loop's clock;
    ``key`` is the hash of its content."""

    text: str
    key: bytes
    deadline: float
    features: asyncio.Future[Features | None]


class FeatureService:
    """The source of features, one per worker process, used from its event loop, which it does not
    block.

    A slow encoder has a thread, which takes what waits, ``MOST_AT_ONCE`` at most. Equal texts are
    encoded once: those in progress, and the last ``CACHED``. ``failed`` is called with every
    exception of the encoder.
    """

    def __init__(
        self, encoder: Encoder, failed: Callable[[Exception], None] = lambda error: None
    ) -> None:
        self.encoder = encoder
        self._failed = failed
        self._cache: Bounded[bytes, Features] = Bounded(CACHED)
        self._under_way: dict[bytes, _Prompt] = {}
        self._queue: queue.SimpleQueue[_Prompt | None] = queue.SimpleQueue()
        self._is_closed = False
        self._thread: Thread | None = None
        self._statistics = FeatureStatistics()

    def start(self) -> None:
        """Start a slow encoder's thread, in the running event loop."""
        if not self.encoder.is_fast:
            loop = asyncio.get_running_loop()
            # A daemon: the end of the process does not wait for an encoder that hangs.
            self._thread = Thread(
                target=self._run, args=(loop,), name="messplus-encoder", daemon=True
            )
            self._thread.start()

    async def features(self, conversation: Conversation, timeout_seconds: float) -> Features | None:
        """Return features of shape (dimension,), read-only; None if they did not come within that
        time.

        A fast encoder runs at once. None as well if too many prompts wait already, and if the
        encoder failed, after a call of ``failed``.
        """
        try:
            text = self.encoder.read(conversation)
        except Exception as error:
            self._fail(1, error)
            return None
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._cache.get(key)
        if known is not None:
            self._cache.move_to_end(key)
            self._statistics.cache_hits += 1
            return known
        if self.encoder.is_fast:
            (features,) = self._taken([key], *self._encoded([text]))
            return features
        return await self._wait_for(text, key, timeout_seconds)

    def statistics(self) -> FeatureStatistics:
        """Return a copy of the counts."""
        return replace(self._statistics)

    async def close(self) -> None:
        """Return when the thread has ended, or after ``CLOSE_SECONDS``; waiting requests get
        None."""
        self._is_closed = True
        self._queue.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)
        for prompt in list(self._under_way.values()):
            self._settle(prompt, None)

    async def _wait_for(self, text: str, key: bytes, timeout_seconds: float) -> Features | None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        prompt = self._under_way.get(key)
        if prompt is None:
            if self._is_closed or len(self._under_way) >= MOST_WAITING:
                self._statistics.overloaded += 1
                return None
            prompt = self._under_way[key] = _Prompt(text, key, deadline, loop.create_future())
            self._queue.put(prompt)
        prompt.deadline = max(prompt.deadline, deadline)
        # This cancels nothing: others may wait for it too, and the cache will keep it.
        await asyncio.wait((prompt.features,), timeout=timeout_seconds)
        if prompt.features.done():
            return prompt.features.result()
        self._statistics.late += 1
        return None

    # In the thread.

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._is_closed:
            prompts = self._next()
            due = [prompt for prompt in prompts if prompt.deadline > loop.time()]
            found = self._encoded([prompt.text for prompt in due]) if due else None
            with suppress(RuntimeError):  # the loop is closed: no request waits
                loop.call_soon_threadsafe(self._deliver, prompts, due, found)

    def _next(self) -> list[_Prompt]:
        """Wait for a prompt; return it with those that wait behind it."""
        found = [self._queue.get()]
        with suppress(queue.Empty):
            while len(found) < MOST_AT_ONCE:
                found.append(self._queue.get_nowait())
        return [prompt for prompt in found if prompt is not None]

    def _encoded(self, texts: Sequence[str]) -> _Encoded:
        """Encode texts; return their features or why there are none, and the seconds it took."""
        started = time.perf_counter()
        found: FeatureRows | Exception
        try:
            found = _checked(self.encoder.encode(texts), (len(texts), self.encoder.dimension))
        except Exception as error:
            found = error
        return found, time.perf_counter() - started

    # In the event loop.

    def _deliver(
        self,
        prompts: Sequence[_Prompt],
        due: Sequence[_Prompt],
        found: _Encoded | None,
    ) -> None:
        """Give each prompt its features, and None to those that no request waits for any more."""
        if found is not None:
            taken = self._taken([prompt.key for prompt in due], *found)
            for prompt, features in zip(due, taken, strict=True):
                self._settle(prompt, features)
        for prompt in prompts:
            self._settle(prompt, None)

    def _settle(self, prompt: _Prompt, features: Features | None) -> None:
        if not prompt.features.done():
            del self._under_way[prompt.key]
            prompt.features.set_result(features)

    def _taken(
        self, keys: Sequence[bytes], found: FeatureRows | Exception, seconds: float
    ) -> list[Features | None]:
        """Count and remember the encoder's result; None in the place of features that it has
        not."""
        statistics = self._statistics
        statistics.prompts += len(keys)
        statistics.batches += 1
        statistics.seconds += seconds
        if isinstance(found, Exception):
            self._fail(len(keys), found)
            return [None] * len(keys)
        return [self._remembered(key, row) for key, row in zip(keys, found, strict=True)]

    def _remembered(self, key: bytes, row: Features) -> Features:
        features = np.array(row, dtype=np.float32)  # a copy: a row would keep its whole batch alive
        features.flags.writeable = False
        self._cache[key] = features
        return features

    def _fail(self, prompts: int, error: Exception) -> None:
        self._statistics.failures += prompts
        self._failed(error)


def _checked(rows: FeatureRows, shape: tuple[int, int]) -> FeatureRows:
    """Check the shape and the numbers. Raises ValueError for invalid features."""
    if rows.shape != shape:
        raise ValueError(f"features of shape {rows.shape} in place of {shape}")
    if not np.isfinite(rows).all():
        raise ValueError("features that are not finite")
    return rows
