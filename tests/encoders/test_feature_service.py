"""Features in time or not at all: batches, deadlines, a bounded queue, one encoding for equals."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from litellm_messplus.encoders.batcher import BATCHES_WAITING, REST
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.prediction.encoder import Conversation, FeatureRows, Features

LONG = 5.0
"""Seconds that no test waits for."""


class SlowEncoder:
    """Of dimension 2: the length of the text, and 1. ``gate`` holds it up; ``batches`` is all that
    it was given."""

    name = "slow-1"
    dimension = 2
    is_fast = False

    def __init__(self, seconds_each: float = 0.0) -> None:
        self.seconds_each = seconds_each
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()
        self.batches: list[list[str]] = []
        self.threads: set[str] = set()

    def read(self, conversation: Conversation) -> str:
        return conversation.text

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        self.batches.append(list(texts))
        self.threads.add(threading.current_thread().name)
        self.started.set()
        self.gate.wait(LONG)
        time.sleep(self.seconds_each * len(texts))
        return self.rows(texts)

    def rows(self, texts: Sequence[str]) -> FeatureRows:
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


class FastEncoder(SlowEncoder):
    is_fast = True


class FailingEncoder(SlowEncoder):
    """Fails in the way that is given."""

    def __init__(self, rows: Callable[[int], Any], is_fast: bool) -> None:
        super().__init__()
        self._rows = rows
        self.is_fast = is_fast

    def rows(self, texts: Sequence[str]) -> FeatureRows:
        return self._rows(len(texts))  # type: ignore[no-any-return]


@asynccontextmanager
async def serving(encoder: SlowEncoder, **options: Any) -> AsyncIterator[FeatureService]:
    service = FeatureService(encoder, **options)
    yield service
    encoder.gate.set()
    await service.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "messplus-encoder"]


def ask(service: FeatureService, text: str, seconds: float = LONG) -> asyncio.Task[Features | None]:
    async def features() -> Features | None:
        found = await service.features(Conversation.of_text(text), seconds)
        return None if found is None else found.features

    return asyncio.create_task(features())


async def hold(service: FeatureService, encoder: SlowEncoder) -> asyncio.Task[Features | None]:
    """A first prompt that keeps the thread busy until the gate opens."""
    encoder.gate.clear()
    encoder.started.clear()
    held = ask(service, "held")
    await asyncio.to_thread(encoder.started.wait, LONG)
    return held


async def test_a_fast_encoder_is_asked_on_the_spot() -> None:
    encoder = FastEncoder()
    async with serving(encoder) as service:
        asked = service.features(Conversation.of_text("four"), 0.0)
        with pytest.raises(StopIteration) as ended:
            asked.send(None)  # what never waits costs no turn of the event loop

    assert ended.value.value.features.tolist() == [4.0, 1.0]
    assert encoder.threads == {"MainThread"}
    assert (service.statistics().prompts, service.statistics().cache_hits) == (1, 0)


@pytest.mark.parametrize("make", [FastEncoder, SlowEncoder])
async def test_what_was_encoded_lately_is_not_encoded_again(make: type[SlowEncoder]) -> None:
    encoder = make()
    async with serving(encoder, cache_entries=2, wait_seconds=0.0) as service:
        first = await ask(service, "a")
        for text in ("b", "a", "c", "a"):  # "c" drives out "b", which was used longest ago
            await ask(service, text)
        again = await ask(service, "a")
        await ask(service, "b")

    assert [text for batch in encoder.batches for text in batch] == ["a", "b", "c", "b"]
    assert again is first
    assert service.statistics().cache_hits == 3


async def test_features_are_shared_so_nobody_may_write_into_them() -> None:
    async with serving(FastEncoder()) as service:
        features = await ask(service, "a")

    assert features is not None
    with pytest.raises(ValueError, match="read-only"):
        features[0] = 2.0


async def test_prompts_that_come_together_are_one_batch() -> None:
    encoder = SlowEncoder()
    async with serving(encoder, wait_seconds=0.2) as service:
        found = await asyncio.gather(*(ask(service, "x" * n) for n in range(5)))

    assert encoder.batches == [["x" * n for n in range(5)]]
    assert encoder.threads == {"messplus-encoder"}
    assert [row is not None and row.tolist() for row in found] == [[n, 1.0] for n in range(5)]
    assert service.statistics().batches == 1


async def test_a_batch_is_no_larger_than_it_may_be() -> None:
    encoder = SlowEncoder()
    async with serving(encoder, batch=2) as service:
        held = await hold(service, encoder)
        others = [ask(service, "x" * n) for n in range(5)]
        await asyncio.sleep(0.01)
        encoder.gate.set()
        await asyncio.gather(held, *others)

    assert [len(batch) for batch in encoder.batches] == [1, 2, 2, 1]


async def test_a_batch_is_no_larger_than_can_be_done_in_time() -> None:
    encoder = SlowEncoder(seconds_each=0.05)
    async with serving(encoder, wait_seconds=0.1) as service:
        await ask(service, "to know how long one takes")
        encoder.batches.clear()
        found = await asyncio.gather(*(ask(service, f"{n}", 0.17) for n in range(4)))

    assert 2 <= len(encoder.batches[0]) <= 3
    assert found[0] is not None


async def test_whoever_waits_past_the_deadline_gets_none_and_the_cache_gets_the_features() -> None:
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        encoder.gate.clear()
        started = time.perf_counter()
        assert await ask(service, "late", 0.05) is None
        assert 0.04 <= time.perf_counter() - started < 0.2
        encoder.gate.set()
        assert (await ask(service, "late")) is not None

    assert encoder.batches == [["late"]]
    assert service.statistics().late == 1


async def test_equal_texts_under_way_are_encoded_once_each_waiter_with_a_deadline_of_its_own() -> (
    None
):
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        held = await hold(service, encoder)
        patient, hasty = ask(service, "same"), ask(service, "same", 0.02)
        assert await hasty is None
        encoder.gate.set()
        assert await patient is not None
        await held

    assert encoder.batches == [["held"], ["same"]]


async def test_what_nobody_waits_for_any_more_is_not_encoded() -> None:
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        held = await hold(service, encoder)
        assert await ask(service, "gone", 0.01) is None
        encoder.gate.set()
        await held
        assert await ask(service, "next") is not None
        assert await ask(service, "gone") is not None

    assert encoder.batches == [["held"], ["next"], ["gone"]]


async def test_more_than_can_be_served_is_refused_at_once() -> None:
    encoder = SlowEncoder()
    async with serving(encoder, batch=1) as service:
        held = await hold(service, encoder)
        waiting = [ask(service, f"{n}") for n in range(BATCHES_WAITING)]
        await asyncio.sleep(0)
        started = time.perf_counter()
        assert await ask(service, "too many") is None
        assert time.perf_counter() - started < 0.05
        encoder.gate.set()
        assert all(found is not None for found in await asyncio.gather(held, *waiting))

    assert service.statistics().overloaded == 1


async def test_a_request_that_is_cancelled_takes_nothing_from_the_others() -> None:
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        held = await hold(service, encoder)
        leaver, stayer = ask(service, "same"), ask(service, "same")
        await asyncio.sleep(0)
        leaver.cancel()
        encoder.gate.set()
        assert await stayer is not None
        await held
        assert leaver.cancelled()


def _raises(count: int) -> Any:
    raise RuntimeError("the encoder is broken")


BROKEN: dict[str, Callable[[int], Any]] = {
    "raises": _raises,
    "not finite": lambda count: np.full((count, 2), np.nan, dtype=np.float32),
    "too narrow": lambda count: np.zeros((count, 1), dtype=np.float32),
    "too many": lambda count: np.zeros((count + 1, 2), dtype=np.float32),
    "nothing": lambda count: None,
}


@pytest.mark.parametrize("is_fast", [True, False])
@pytest.mark.parametrize("how", BROKEN)
async def test_an_encoder_that_fails_gives_none_and_is_reported(how: str, is_fast: bool) -> None:
    errors: list[Exception] = []
    encoder = FailingEncoder(BROKEN[how], is_fast)
    async with serving(encoder, failed=errors.append) as service:
        assert await ask(service, "a") is None
        assert await ask(service, "a") is None

    assert len(errors) == 2
    assert (service.statistics().failures, service.statistics().late) == (2, 0)


async def test_a_conversation_that_cannot_be_read_gives_none() -> None:
    class Unreadable(SlowEncoder):
        def read(self, conversation: Conversation) -> str:
            raise RuntimeError("cannot be read")

    errors: list[Exception] = []
    async with serving(Unreadable(), failed=errors.append) as service:
        assert await ask(service, "a") is None

    assert [str(error) for error in errors] == ["cannot be read"]


async def test_closing_waits_for_the_thread_and_lets_everybody_go() -> None:
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        held = await hold(service, encoder)
        waiting = ask(service, "waits")
        await asyncio.sleep(0)
        closing = asyncio.create_task(service.close())
        await asyncio.sleep(0.02)
        assert not closing.done()
        encoder.gate.set()
        await closing
        assert await waiting is None
        await held
        assert await ask(service, "after the end") is None

    assert encoder.batches == [["held"]]


async def test_a_lone_surrogate_is_a_text_like_any_other() -> None:
    async with serving(FastEncoder()) as service:
        assert await ask(service, "\ud800") is not None


async def test_the_event_loop_keeps_turning_while_a_slow_encoder_works() -> None:
    encoder = SlowEncoder(seconds_each=0.02)
    longest = 0.0
    async with serving(encoder) as service:
        asked = asyncio.gather(*(ask(service, f"{n}") for n in range(10)))
        before = time.perf_counter()
        while not asked.done():
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            longest, before = max(longest, now - before), now
        await asked

    assert longest < 0.1  # of 0.2 s in all; a busy machine of tests is not the place for less


async def test_whoever_cannot_be_served_in_time_does_not_wait() -> None:
    encoder = SlowEncoder(seconds_each=0.1)
    async with serving(encoder) as service:
        await ask(service, "to know how long one takes")
        started = time.perf_counter()
        assert await ask(service, "hopeless", 0.05) is None
        assert time.perf_counter() - started < 0.03

    assert service.statistics().overloaded == 1


async def test_an_encoder_that_was_too_slow_is_tried_again_later() -> None:
    encoder = SlowEncoder(seconds_each=0.06)
    async with serving(encoder) as service:
        await ask(service, "to know how long one takes")
        encoder.seconds_each = 0.0
        assert await ask(service, "too soon", 0.05) is None
        await asyncio.sleep(1.5 * 0.06 * REST)
        started = time.perf_counter()
        assert await ask(service, "tried", 0.05) is None
        assert time.perf_counter() - started < 0.03  # nobody waits for a mere trial
        await asyncio.sleep(0.1)
        found = [await ask(service, text, 0.05) for text in ("tried", "faster now")]

    assert all(each is not None for each in found)
    assert encoder.batches == [["to know how long one takes"], ["tried"], ["faster now"]]


async def test_nobody_waits_for_an_encoder_that_is_still_warming_up() -> None:
    encoder = SlowEncoder()
    encoder.gate.clear()
    async with serving(encoder) as service:
        service.start()
        started = time.perf_counter()
        assert await ask(service, "too early") is None
        assert time.perf_counter() - started < LONG / 2
        encoder.gate.set()
        await asyncio.sleep(0.3)
        assert await ask(service, "once it is warm") is not None


async def test_with_no_time_left_nobody_begins_to_wait() -> None:
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        asked = service.features(Conversation.of_text("too late already"), 0.0)
        with pytest.raises(StopIteration) as ended:
            asked.send(None)

    assert ended.value.value is None
    assert encoder.batches == []
    assert service.statistics().overloaded == 1


async def test_nobody_waits_so_long_that_a_late_event_loop_would_make_it_too_long() -> None:
    encoder = SlowEncoder()
    async with serving(encoder) as service:

        async def features(text: str, seconds: float) -> float:
            """Are waited for in vain; how long."""
            started = time.perf_counter()
            assert await service.features(Conversation.of_text(text), seconds) is None
            return time.perf_counter() - started

        async def other_work() -> None:
            while True:
                hold_the_loop(0.03)
                await asyncio.sleep(0)

        busy = asyncio.create_task(other_work())
        encoder.gate.clear()
        waited = [await features(f"{n}", 0.15) for n in range(20)]
        late = service.statistics().late
        await features("does not wait", 0.05)
        busy.cancel()

    assert waited[0] > 0.15  # by which it learned how late the loop is
    assert sorted(waited)[-3] <= 0.16  # a machine of tests has worse moments
    assert service.statistics().late == late


def hold_the_loop(seconds: float) -> None:
    time.sleep(seconds)


async def test_a_start_warms_the_thread_up_and_learns_its_speed() -> None:
    encoder = SlowEncoder(seconds_each=0.1)
    async with serving(encoder) as service:
        service.start()
        await asyncio.sleep(0.5)  # twice what the two texts take
        started = time.perf_counter()
        assert await ask(service, "hopeless", 0.05) is None
        assert time.perf_counter() - started < 0.03

    assert service.statistics().prompts == 0
