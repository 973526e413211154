"""A slow encoder under the real plugin: decided in time, by what was there, and only once."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from litellm_messplus.brain.decided import FEATURES_SHARE
from litellm_messplus.core.decision import Reason
from litellm_messplus.core.encoder import Conversation, FeatureRows, Features
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.entries import Example, Settled
from litellm_messplus.core.verdict import Given
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.status.build import status_of
from litellm_messplus.status.reading import RECENT_DECISIONS
from litellm_messplus.store.tables import requests
from tests.support.in_process import brain_of, url, written
from tests.support.journey import Journey, journey
from tests.support.patience import PATIENT, turns, until_it_holds


class Encoder:
    """``gate`` holds it up; it fails where ``is_broken``."""

    name = "timed-1"
    dimension = 2
    is_fast = False
    is_broken = False

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()

    def read(self, conversation: Conversation) -> str:
        return conversation.text

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        if self.is_broken:
            raise RuntimeError("the encoder is broken")
        self.started.set()
        self.gate.wait(PATIENT)
        return np.ones((len(texts), 2), dtype=np.float32)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[Journey, Encoder]]:
    encoder = Encoder()
    async with journey(folder, encoder=encoder) as proxy:
        try:
            yield proxy, encoder
        finally:
            encoder.gate.set()


async def test_features_in_time_are_decided_by_and_logged(tmp_path: Path) -> None:
    async with serving(tmp_path) as (proxy, _encoder):
        await proxy.ask("in time")
        counted = proxy.counters

    (row,) = await written(tmp_path, requests)
    assert np.frombuffer(row.features, "<f4").tolist() == [1.0, 1.0]
    assert 0.0 < row.encode_seconds <= row.decision_seconds
    assert counted == {}


@pytest.mark.parametrize("is_broken", [False, True], ids=["slow", "broken"])
async def test_without_features_running_means_decide_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_broken: bool
) -> None:
    async with serving(tmp_path) as (proxy, encoder):
        waits = hurried(proxy, encoder, monkeypatch)
        if is_broken:
            encoder.is_broken = True
        else:
            encoder.gate.clear()
        left = await proxy.ask("too late")
        counted = proxy.counters

    (row,) = await written(tmp_path, requests)
    assert waits == [pytest.approx(FEATURES_SHARE * PATIENT, rel=0.1)]
    assert len(left.ids) == 1
    assert (row.features, row.encode_seconds, row.encoder) == (None, None, "timed-1")
    assert row.reason in set(Reason)
    assert counted.pop("features_late") == 1
    assert list(counted) == (["encoder_failures"] if is_broken else [])


def hurried(proxy: Journey, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that features may take, of each request; for an encoder that is held up none of
    them waits for so long."""
    waits: list[float] = []
    features = brain_of(proxy.plugin.parts).features.features

    async def hurry(conversation: Conversation, timeout_seconds: float) -> Features | None:
        waits.append(timeout_seconds)
        return await features(conversation, PATIENT if encoder.gate.is_set() else 0.02)

    monkeypatch.setattr(brain_of(proxy.plugin.parts).features, "features", hurry)
    return waits


async def test_a_hopeless_zoo_is_out_of_reach_without_features_in_time(tmp_path: Path) -> None:
    async with serving(tmp_path) as (proxy, encoder):
        for number in range(200):
            for model in ("small", "large"):
                teach(proxy.engine, f"openai/{model}", number, value=0.0)
        encoder.is_broken = True
        for number in range(3 * RECENT_DECISIONS):
            await proxy.ask(f"hopeless {number}")

    (level,) = (await status_of(url(tmp_path), 500))["levels"]
    assert {row.features for row in await written(tmp_path, requests)} == {None}
    assert not level["is_within_reach"]


def teach(engine: Engine, model: str, number: int, value: float) -> None:
    """A judged answer of that model, the ``number``-th."""
    example = Example(f"taught-{number}", engine.encoder.name, None, model, False, None)
    given = (Given(LabelKind.FEEDBACK, "made", value),)
    engine.apply(Settled(0, "zoo", f"taught-{number}.0", model, 40, 10.0, 40.0, example, given))


async def under_way(encoder: Encoder) -> None:
    """Until the encoder has the first prompt, and all that was asked waits for it."""
    await until_it_holds(encoder.started.is_set)
    await turns()


async def test_two_attempts_of_one_request_at_once_are_decided_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as (proxy, encoder):
        encoder.gate.clear()
        arguments = proxy.request()
        both = asyncio.gather(proxy.ask("one", arguments), proxy.ask("one", arguments))
        await under_way(encoder)
        encoder.gate.set()
        first, second = await both
        third = await proxy.ask("one", arguments)

    assert len(await written(tmp_path, requests)) == 1
    assert first.ids == second.ids == third.ids


async def test_a_client_that_repeats_an_id_makes_requests_of_its_own(tmp_path: Path) -> None:
    async with serving(tmp_path) as (proxy, encoder):
        encoder.gate.clear()
        asked = asyncio.gather(*(proxy.ask(call_id="same") for _ in range(3)))
        await under_way(encoder)
        encoder.gate.set()
        await asked

    assert [row.t for row in await written(tmp_path, requests)] == [1, 2, 3]


async def test_an_attempt_whose_elder_was_cancelled_decides_itself(tmp_path: Path) -> None:
    async with serving(tmp_path) as (proxy, encoder):
        encoder.gate.clear()
        arguments = proxy.request()
        elder = asyncio.create_task(proxy.ask("one", arguments))
        younger = asyncio.create_task(proxy.ask("one", arguments))
        await under_way(encoder)
        elder.cancel()
        await turns()
        encoder.gate.set()
        left = await younger

    assert len(left.ids) == 1
    assert len(await written(tmp_path, requests)) == 1


async def test_the_metrics_say_what_the_encoder_did(tmp_path: Path) -> None:
    async with serving(tmp_path) as (proxy, _encoder):
        for prompt in ("a", "b", "a"):
            await proxy.ask(prompt)
        metrics = await brain_of(proxy.plugin.parts).watch.metrics()

    assert "messplus_encoder_prompts 2.0\n" in metrics
    assert "messplus_encoder_cache_hits 1.0\n" in metrics
