"""Features in time or not at all: batches, deadlines, a bounded queue, one encoding for equals."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from litellm_messplus.core.encoder import Conversation, FeatureRows, Features
from litellm_messplus.encoders import service as module
from litellm_messplus.encoders.service import MOST_AT_ONCE, FeatureService
from tests.support.patience import PATIENT, turns, until_it_holds


class SlowEncoder:
    """Of dimension 2: the length of the text, and 1. ``gate`` holds it up; ``batches`` is all that
    it was given."""

    name = "slow-1"
    dimension = 2
    is_fast = False

    def __init__(self) -> None:
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
async def serving(
    encoder: SlowEncoder, failed: Callable[[Exception], None] = lambda error: None
) -> AsyncIterator[FeatureService]:
    service = FeatureService(encoder, failed)
    service.start()
    yield service
    encoder.gate.set()
    await service.close()
    assert not has_thread()


def has_thread() -> bool:
    return "messplus-encoder" in {thread.name for thread in threading.enumerate()}


def ask(
    service: FeatureService, text: str, seconds: float = PATIENT
) -> asyncio.Task[Features | None]:
    return asyncio.create_task(service.features(Conversation.of_text(text), seconds))


async def hold(service: FeatureService, encoder: SlowEncoder) -> asyncio.Task[Features | None]:
    """A first prompt that keeps the thread busy until the gate opens."""
    encoder.gate.clear()
    encoder.started.clear()
    held = ask(service, "held")
    await asyncio.to_thread(encoder.started.wait, PATIENT)
    return held


async def test_a_fast_encoder_is_called_on_the_spot() -> None:
    encoder = FastEncoder()
    async with serving(encoder) as service:
        waiting = service.features(Conversation.of_text("four \ud800"), 0.0)
        with pytest.raises(StopIteration) as ended:
            waiting.send(None)  # what never waits costs no turn of the event loop

    found = ended.value.value
    assert found.tolist() == [6.0, 1.0]
    assert not found.flags.writeable  # they are shared
    assert encoder.threads == {"MainThread"}
    assert service.statistics().prompts == 1


@pytest.mark.parametrize("make", [FastEncoder, SlowEncoder])
async def test_what_was_encoded_lately_is_not_encoded_again(
    make: type[SlowEncoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CACHED", 2)
    encoder = make()
    async with serving(encoder) as service:
        first = await ask(service, "a")
        for text in ("b", "a", "c", "a"):  # "c" drives out "b", which was used longest ago
            await ask(service, text)
        again = await ask(service, "a")
        await ask(service, "b")

    assert [text for batch in encoder.batches for text in batch] == ["a", "b", "c", "b"]
    assert again is first
    assert service.statistics().cache_hits == 3


async def test_what_waits_is_one_batch_of_at_most_so_many() -> None:
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        held = await hold(service, encoder)
        others = [ask(service, "x" * n) for n in range(MOST_AT_ONCE + 2)]
        await turns()
        assert not held.done()
        encoder.gate.set()
        found = await asyncio.gather(*others)
        await held

    assert [len(batch) for batch in encoder.batches] == [1, MOST_AT_ONCE, 2]
    assert encoder.threads == {"messplus-encoder"}
    assert [row is not None and row.tolist() for row in found] == [
        [n, 1.0] for n in range(MOST_AT_ONCE + 2)
    ]
    assert service.statistics().batches == 3


async def test_the_event_loop_goes_on_while_a_prompt_is_encoded() -> None:
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        held = await hold(service, encoder)
        for _ in range(100):
            await asyncio.sleep(0.0)
        assert not held.done()
        encoder.gate.set()
        assert await held is not None


async def test_a_request_that_waits_too_long_gets_none_and_the_cache_gets_the_features() -> None:
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        encoder.gate.clear()
        assert await ask(service, "late", 0.05) is None
        encoder.gate.set()
        assert (await ask(service, "late")) is not None

    assert encoder.batches == [["late"]]
    assert service.statistics().late == 1


async def test_equal_texts_are_encoded_once_each_waiter_with_its_deadline() -> None:
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
        encoder.gate.set()
        await held
        assert await ask(service, "next") is not None
        assert await ask(service, "gone") is not None

    assert encoder.batches == [["held"], ["next"], ["gone"]]


async def test_more_than_may_wait_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 4)
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        held = await hold(service, encoder)
        waiting = [ask(service, f"{n}") for n in range(3)]
        await turns()
        assert await ask(service, "too many") is None
        assert (service.statistics().overloaded, service.statistics().late) == (1, 0)
        encoder.gate.set()
        assert all(found is not None for found in await asyncio.gather(held, *waiting))
        assert await ask(service, "room again") is not None


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
    async with serving(encoder, errors.append) as service:
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
        await until_it_holds(lambda: service._is_closed)
        encoder.gate.set()
        await closing
        assert not has_thread()
        assert await waiting is None
        await held
        assert await ask(service, "after the end") is None

    assert encoder.batches == [["held"]]


async def test_an_encoder_that_hangs_holds_up_no_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.05)
    encoder = SlowEncoder()
    async with serving(encoder) as service:
        held = await hold(service, encoder)
        await service.close()
        assert await held is None
        assert has_thread()
        monkeypatch.undo()
