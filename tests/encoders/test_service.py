"""Features in time or not at all: batches, deadlines, a bounded queue, one encoding for equals."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

from litellm_messplus.encoders import batcher
from litellm_messplus.encoders.batcher import BATCHES_WAITING, LOOK_SECONDS, REST, Lateness
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.prediction.encoder import Conversation, FeatureRows, Features
from tests.support import virtual_time
from tests.support.patience import PATIENT, turns, until_it_holds
from tests.support.virtual_time import running_loop

TOO_LONG = 2 * PATIENT
"""Seconds of encoding that no request waits for."""


class SlowEncoder:
    """Of dimension 2: the length of the text, and 1. ``gate`` holds it up; ``batches`` is all that
    it was given. A text takes ``seconds_each`` of its own clock, which stands still else."""

    name = "slow-1"
    dimension = 2
    is_fast = False

    def __init__(self, seconds_each: float = 0.0) -> None:
        self.seconds_each = seconds_each
        self.now = 0.0
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
        self.gate.wait(PATIENT)
        self.now += self.seconds_each * len(texts)
        return self.rows(texts)

    def clock(self) -> float:
        return self.now

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
    service = FeatureService(encoder, **{"clock": encoder.clock, **options})
    yield service
    encoder.gate.set()
    await service.close()
    assert not has_thread()


def has_thread() -> bool:
    return "messplus-encoder" in {thread.name for thread in threading.enumerate()}


def ask(
    service: FeatureService, text: str, seconds: float = PATIENT
) -> asyncio.Task[Features | None]:
    async def features() -> Features | None:
        found = await service.features(Conversation.of_text(text), seconds)
        return None if found is None else found.features

    return asyncio.create_task(features())


async def hold(service: FeatureService, encoder: SlowEncoder) -> asyncio.Task[Features | None]:
    """A first prompt that keeps the thread busy until the gate opens."""
    encoder.gate.clear()
    encoder.started.clear()
    held = ask(service, "held")
    await asyncio.to_thread(encoder.started.wait, PATIENT)
    return held


@pytest.mark.parametrize(
    ("make", "rows", "threads", "overloaded"),
    [(FastEncoder, [6.0, 1.0], {"MainThread"}, 0), (SlowEncoder, None, set(), 1)],
)
async def test_a_fast_encoder_is_called_on_the_spot_and_none_waits_with_no_time_left(
    make: type[SlowEncoder], rows: list[float] | None, threads: set[str], overloaded: int
) -> None:
    encoder = make()
    async with serving(encoder) as service:
        waiting = service.features(Conversation.of_text("four \ud800"), 0.0)
        with pytest.raises(StopIteration) as ended:
            waiting.send(None)  # what never waits costs no turn of the event loop

    found = ended.value.value
    assert (found if found is None else found.features.tolist()) == rows
    assert found is None or not found.features.flags.writeable  # they are shared
    assert encoder.threads == threads
    statistics = service.statistics()
    assert (statistics.prompts, statistics.overloaded) == (1 - overloaded, overloaded)


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


async def test_prompts_that_come_together_are_one_batch() -> None:
    encoder = SlowEncoder()
    async with serving(encoder, batch=5, wait_seconds=PATIENT) as service:
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
        await turns()
        assert not held.done()
        encoder.gate.set()
        await asyncio.gather(held, *others)

    assert [len(batch) for batch in encoder.batches] == [1, 2, 2, 1]


async def test_a_batch_is_no_larger_than_can_be_done_in_time() -> None:
    encoder = SlowEncoder(seconds_each=0.3 * PATIENT)
    async with serving(encoder) as service:
        held = await hold(service, encoder)  # after which three can be done
        others = [ask(service, f"{n}", 1.3 * PATIENT) for n in range(4)]
        await turns()
        encoder.gate.set()
        found = await asyncio.gather(held, *others)

    assert [len(batch) for batch in encoder.batches] == [1, 3, 1]
    assert found[1] is not None


async def test_a_request_that_waits_too_long_gets_none_and_the_cache_gets_the_features() -> None:
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        encoder.gate.clear()
        assert await ask(service, "late", 0.05) is None
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


async def test_what_no_request_waits_for_any_more_is_not_encoded() -> None:
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        held = await hold(service, encoder)
        assert await ask(service, "gone", 0.01) is None
        encoder.now += 1.0
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
        await turns()
        assert await ask(service, "too many") is None
        assert (service.statistics().overloaded, service.statistics().late) == (1, 0)
        encoder.gate.set()
        assert all(found is not None for found in await asyncio.gather(held, *waiting))


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


def unread(conversation: Conversation) -> str:
    raise RuntimeError("cannot be read")


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

        encoder.read = unread  # type: ignore[method-assign]
        assert await ask(service, "a") is None

    assert len(errors) == 3
    assert str(errors[-1]) == "cannot be read"
    assert (service.statistics().failures, service.statistics().late) == (3, 0)


async def test_closing_waits_for_the_thread_and_lets_all_go() -> None:
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        held = await hold(service, encoder)
        waiting = ask(service, "waits")
        await turns()
        closing = asyncio.create_task(service.close())
        await until_it_holds(lambda: service._batcher._is_closing)
        encoder.gate.set()
        await closing
        assert not has_thread()
        assert await waiting is None
        await held
        assert await ask(service, "after the end") is None

    assert encoder.batches == [["held"]]


async def test_an_encoder_that_was_too_slow_is_tried_again_later() -> None:
    encoder = SlowEncoder(seconds_each=TOO_LONG)
    async with serving(encoder) as service:
        await ask(service, "to know how long one takes")
        encoder.seconds_each = 0.0
        assert await ask(service, "too soon") is None
        assert (service.statistics().overloaded, service.statistics().late) == (1, 0)
        encoder.now += TOO_LONG * REST
        assert await ask(service, "tried") is None  # none waits for a mere trial
        assert (service.statistics().overloaded, service.statistics().late) == (2, 0)
        await until_it_holds(lambda: service.statistics().prompts == 2)
        found = [await ask(service, text) for text in ("tried", "faster now")]

    assert all(each is not None for each in found)
    assert encoder.batches == [["to know how long one takes"], ["tried"], ["faster now"]]


async def test_no_request_waits_for_an_encoder_that_is_still_warming_up() -> None:
    encoder = SlowEncoder()
    encoder.gate.clear()
    async with serving(encoder) as service:
        service.start()
        assert await ask(service, "too early") is None
        assert (service.statistics().overloaded, service.statistics().late) == (1, 0)
        encoder.gate.set()
        await until_it_holds(lambda: service._batcher._is_warm)
        assert await ask(service, "once it is warm") is not None
    slow = SlowEncoder(seconds_each=TOO_LONG)
    async with serving(slow) as service:
        service.start()
        await until_it_holds(lambda: service._batcher._is_warm)
        assert await ask(service, "hopeless") is None
    assert service.statistics().prompts == 0


def test_no_request_waits_so_long_that_a_late_event_loop_would_make_it_too_long() -> None:
    """In a loop that is busy for 30 ms in every turn."""
    encoder = SlowEncoder()

    async def story() -> tuple[list[float], float]:
        loop = running_loop()
        async with serving(encoder) as service:
            service._lateness = Lateness(loop.time)

            async def waited(text: str, seconds: float) -> float:
                """How long late features are waited for."""
                started = loop.time()
                assert await service.features(Conversation.of_text(text), seconds) is None
                return loop.time() - started

            async def other_work() -> None:
                while True:
                    loop.spend(0.03)
                    await asyncio.sleep(0)

            held = await hold(service, encoder)
            busy = asyncio.create_task(other_work())
            found = [await waited(f"{number}", 0.15) for number in range(20)]
            with_too_little = await waited("does not wait", 0.05)
            busy.cancel()
            encoder.gate.set()
            await held
            return found, with_too_little

    found, with_too_little = virtual_time.run(story())
    assert found[0] > 0.15  # by which it learned how late the loop is
    assert max(found[1:]) <= 0.15
    assert with_too_little == 0.0


# How late an event loop is, found by the request that is about to wait in it.

close_to = partial(pytest.approx, abs=1e-6)


def lateness() -> Lateness:
    return Lateness(running_loop().time)


async def look(late: Lateness, seconds: float = 0.0) -> float:
    """What was known before a look, into which other work of so many seconds falls."""
    known = late.seconds()
    await asyncio.sleep(0)
    running_loop().spend(seconds)
    await asyncio.sleep(4 * LOOK_SECONDS)
    return known


def test_nothing_is_known_at_first_and_an_idle_loop_is_not_late() -> None:
    async def story() -> list[float]:
        late = lateness()
        return [await look(late), await look(late)]

    assert virtual_time.run(story()) == close_to([0.0, 0.0])


def test_of_a_few_looks_the_worst_counts_and_of_many_not_the_rarest() -> None:
    async def story() -> tuple[float, float]:
        late = lateness()
        for seconds in (0.0, 0.1, 0.02, 0.0):
            await look(late, seconds)
        of_a_few = await look(late)
        for _ in range(20):
            await look(late)
        return of_a_few, await look(late)

    assert virtual_time.run(story()) == close_to((0.1 - LOOK_SECONDS, 0.0))


@pytest.mark.parametrize(("name", "value", "pause"), [("SECONDS", 0.1, 0.15), ("LOOKS", 2, 0.0)])
def test_what_was_long_ago_is_forgotten(
    name: str, value: float, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batcher, name, value)

    async def story() -> tuple[float, float]:
        late = lateness()
        await look(late, 0.1)
        found = await look(late)
        running_loop().spend(pause)
        for _ in range(3):
            await look(late)
        return found, await look(late)

    assert virtual_time.run(story()) == close_to((0.1 - LOOK_SECONDS, 0.0))
