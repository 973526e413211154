"""What reading prompts takes in joules: measured where there is a sensor, and never guessed."""

import asyncio
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from litellm_messplus.conformance.encoders import FakeEncoder
from litellm_messplus.encoders import process
from litellm_messplus.encoders.batcher import Encoded, Encoding
from litellm_messplus.encoders.process import EncoderProcessError, ProcessEncoder, load_for_requests
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.prediction.encoder import Conversation
from tests.support import metered_worker, slow_encoders
from tests.support.metered_worker import SENSOR, WATTS
from tests.support.patience import PATIENT, until
from tests.support.slow_encoders import BURNT_SECONDS


@pytest.fixture
def sensor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated one, for the processes of encoders."""
    monkeypatch.setattr(process, "WORKER", metered_worker.__name__)


@pytest.fixture
def burning(sensor: None) -> Iterator[ProcessEncoder]:
    with closing(started("Burning")) as found:
        yield found


def started(encoder: str) -> ProcessEncoder:
    found = load_for_requests(f"{slow_encoders.HERE}:{encoder}")
    assert isinstance(found, ProcessEncoder)
    return found


def test_the_joules_of_a_batch_are_its_computing_and_waiting_takes_none(
    burning: ProcessEncoder,
) -> None:
    for texts in (["a"], ["a", "b", "c"], ["a", "wait"]):
        found = burning.encode_metered(texts)
        assert found.rows.shape == (len(texts), 2)
        assert found.joules == pytest.approx(len(texts) * BURNT_SECONDS * WATTS, rel=0.25)


@pytest.mark.usefixtures("sensor")
@pytest.mark.parametrize(
    ("wrong", "said"), [("silent", "counted 0 J"), ("broken", "the sensor is gone")]
)
def test_an_encoder_starts_beside_a_sensor_that_fails_and_the_log_says_why(
    wrong: str, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(SENSOR, wrong)
    caplog.set_level(logging.INFO, "litellm_messplus")
    with closing(started("Burning")) as encoder:
        assert encoder.encode_metered(["a"]).joules is None

    (message,) = [each for each in caplog.messages if "consumes" in each]
    assert message.startswith("what the encoder consumes: not measured: ")
    assert said in message


def test_a_process_that_comes_up_again_keeps_what_was_measured(
    burning: ProcessEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside requests it would measure theirs, and they would wait for it."""
    monkeypatch.setattr(process, "REST_SECONDS", 0.05)
    monkeypatch.setenv(SENSOR, "silent")
    before = int(burning.encode(["a"])[0, 0])
    os.kill(before, signal.SIGKILL)
    found: list[Encoded] = []

    def is_there() -> bool:
        with suppress(EncoderProcessError):
            found.append(burning.encode_metered(["a"]))
        return bool(found)

    until(is_there)
    assert found[0].rows[0, 0] != before
    assert found[0].joules == pytest.approx(BURNT_SECONDS * WATTS, rel=0.25)


async def asked(service: FeatureService, *texts: str) -> list[Encoding]:
    """All at once."""
    conversations = [Conversation.of_text(text) for text in texts]
    found = await asyncio.gather(*(service.features(each, PATIENT) for each in conversations))
    return [each for each in found if each is not None]


async def test_the_joules_of_the_requests_add_up_to_those_of_the_encoder(
    burning: ProcessEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = FeatureService(burning, batch=3, wait_seconds=PATIENT)
    together = await asked(service, "a", "b", "c")
    monkeypatch.setattr(service._batcher, "_wait_seconds", 0.0)
    alone = await asked(service, "d")
    statistics = service.statistics()
    await service.close()

    joules = [each.joules or 0.0 for each in (*together, *alone)]
    assert joules[0] == joules[1] == joules[2] > 0.0
    assert sum(joules) == pytest.approx(statistics.joules)
    assert sum(joules) == pytest.approx(4 * BURNT_SECONDS * WATTS, rel=0.25)
    assert (statistics.prompts, statistics.batches) == (4, 2)


async def test_who_finds_a_prompt_encoded_or_on_its_way_has_it_for_nothing(
    burning: ProcessEncoder,
) -> None:
    service = FeatureService(burning)
    first, second = await asked(service, "same", "same")
    (cached,) = await asked(service, "same")
    statistics = service.statistics()
    await service.close()

    assert first.joules == statistics.joules
    assert (second.joules, cached.joules) == (0.0, 0.0)
    assert first.features is second.features is cached.features


@pytest.mark.parametrize("is_fast", [True, False])
async def test_without_a_sensor_nothing_is_measured_and_the_cache_does_not_say_zero(
    is_fast: bool,
) -> None:
    service = FeatureService(FakeEncoder(is_fast=is_fast), wait_seconds=0.0)
    found = [*await asked(service, "same", "same"), *await asked(service, "same")]
    statistics = service.statistics()
    await service.close()

    assert [each.joules for each in found] == [None, None, None]
    assert statistics.joules is None
