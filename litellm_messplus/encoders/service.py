"""Features for the proxy: at once from a fast encoder, within a deadline from a slow one."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from litellm_messplus.encoders.batcher import (
    Batch,
    Batcher,
    DeadlinePassedError,
    Encode,
    Encoded,
    Encoding,
    Lateness,
    Prompt,
    unmeasured,
)
from litellm_messplus.encoders.process import ProcessEncoder
from litellm_messplus.prediction.encoder import Conversation, Encoder, Features
from litellm_messplus.runtime.bounded import Bounded

CLOSE_SECONDS = 2.0
"""Longest wait of a stop for a batch in progress in another process."""


@dataclass(slots=True)
class FeatureStatistics:
    """The counts since the start: ``seconds`` are the encoder's own, for ``prompts`` in
    ``batches``, and ``joules`` their energy above idle; None if not measured.

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
    joules: float | None = None


class FeatureService:
    """The source of features, one per worker process, used from its event loop, which it does not
    block.

    A slow encoder has a thread that waits for it, and gets up to ``batch`` prompts at once, the
    first of which waits for others for ``wait_seconds`` at most. Equal texts are encoded once:
    those in progress, and the last ``cache_entries``. ``failed`` is called with every exception of
    the encoder. ``clock`` gives the seconds of deadlines and of encoding.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        batch: int = 16,
        wait_seconds: float = 0.002,
        cache_entries: int = 10_000,
        failed: Callable[[Exception], None] = lambda error: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.encoder = encoder
        self._failed = failed
        self._clock = clock
        self._cache: Bounded[bytes, Encoding] = Bounded(cache_entries)
        self._under_way: dict[bytes, Prompt] = {}
        self._lateness = Lateness()
        self._statistics = FeatureStatistics()
        self._encode = _encode_of(encoder)
        self._batcher = Batcher(
            self._encode, self._finish, largest=batch, wait_seconds=wait_seconds, clock=clock
        )

    def start(self) -> None:
        """Warm up a slow encoder's thread before the first request."""
        if not self.encoder.is_fast:
            self._batcher.start()

    async def features(self, conversation: Conversation, timeout_seconds: float) -> Encoding | None:
        """Return features of shape (dimension,), read-only; None if they did not come within that
        time.

        A fast encoder runs at once. None as well if too many prompts wait already, if the event
        loop is so late that waiting would take longer, and if the encoder failed, after a call of
        ``failed``. The joules of a prompt, if measured, count for its first request: others that
        find it encoded or in progress get 0.
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
            return self._encode_now(text, key)
        return await self._wait_for(text, key, timeout_seconds)

    def statistics(self) -> FeatureStatistics:
        """Return a copy of the counts."""
        return replace(self._statistics)

    async def close(self) -> None:
        """Return when the encoder's thread and process have ended; waiting requests get None."""
        await asyncio.to_thread(self._end)
        for prompt in self._under_way.values():
            _resolve(prompt, None)
        self._under_way.clear()

    def _end(self) -> None:
        if isinstance(self.encoder, ProcessEncoder):
            self._batcher.close(CLOSE_SECONDS)
            self.encoder.close()  # which ends the thread's wait for it
        self._batcher.close()

    def _encode_now(self, text: str, key: bytes) -> Encoding | None:
        started = self._clock()
        result: Encoded | Exception
        try:
            result = self._encode((text,))
        except Exception as error:
            result = error
        (encoding,) = self._taken((key,), result, self._clock() - started)
        return encoding

    async def _wait_for(self, text: str, key: bytes, timeout_seconds: float) -> Encoding | None:
        timeout_seconds -= self._lateness.seconds()
        if timeout_seconds <= 0.0:
            self._statistics.overloaded += 1
            return None
        deadline = self._clock() + timeout_seconds
        prompt = self._under_way.get(key)
        is_shared = prompt is not None
        if prompt is None:
            prompt = Prompt(text, key, deadline, asyncio.get_running_loop().create_future())
            if not self._batcher.put(prompt):
                self._statistics.overloaded += 1
                return None
            self._under_way[key] = prompt
        prompt.deadline = max(prompt.deadline, deadline)
        # This cancels nothing: others may wait for it too, and the cache will keep it.
        await asyncio.wait((prompt.encoding,), timeout=timeout_seconds)
        if prompt.encoding.done():
            encoding = prompt.encoding.result()
            return encoding.again() if encoding is not None and is_shared else encoding
        self._statistics.late += 1
        return None

    def _finish(self, batch: Batch) -> None:
        """Deliver a finished batch, in the event loop."""
        for prompt in batch.prompts:
            self._under_way.pop(prompt.key, None)
        if isinstance(batch.result, DeadlinePassedError):
            for prompt in batch.prompts:
                _resolve(prompt, None)
            return
        keys = [prompt.key for prompt in batch.prompts]
        found = self._taken(keys, batch.result, batch.seconds)
        for prompt, encoding in zip(batch.prompts, found, strict=True):
            _resolve(prompt, encoding)

    def _taken(
        self, keys: Sequence[bytes], result: Encoded | Exception, seconds: float
    ) -> list[Encoding | None]:
        """Count and remember the encoder's result; None in the place of invalid features."""
        statistics = self._statistics
        statistics.prompts += len(keys)
        statistics.batches += 1
        statistics.seconds += seconds
        try:
            encoded = _checked(result, (len(keys), self.encoder.dimension))
        except Exception as error:
            self._fail(len(keys), error)
            return [None] * len(keys)
        joules = encoded.joules
        if joules is not None:
            statistics.joules = (statistics.joules or 0.0) + joules
            joules /= len(keys)
        found = zip(keys, encoded.rows, strict=True)
        return [self._remembered(key, row, joules) for key, row in found]

    def _fail(self, prompts: int, error: Exception) -> None:
        self._statistics.failures += prompts
        self._failed(error)

    def _remembered(self, key: bytes, row: Features, joules: float | None) -> Encoding:
        features = np.array(row, dtype=np.float32)  # a copy: a row would keep its whole batch alive
        features.flags.writeable = False
        encoding = Encoding(features, joules)
        self._cache[key] = encoding.again()
        return encoding


def _encode_of(encoder: Encoder) -> Encode:
    """Return the function that encodes: joules are measured only in an encoder's own process."""
    return encoder.encode_metered if isinstance(encoder, ProcessEncoder) else unmeasured(encoder)


def _checked(result: Encoded | Exception, shape: tuple[int, int]) -> Encoded:
    """Check the shape and the numbers. Raises the encoder's exception, and ValueError for invalid
    features."""
    if isinstance(result, Exception):
        raise result
    rows = result.rows
    if rows.shape != shape:
        raise ValueError(f"features of shape {rows.shape} in place of {shape}")
    if not np.isfinite(rows).all():
        raise ValueError("features that are not finite")
    return result


def _resolve(prompt: Prompt, encoding: Encoding | None) -> None:
    if not prompt.encoding.done():
        prompt.encoding.set_result(encoding)
