"""A slow encoder in a process of its own: the same features, and nothing that outlives anything."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing import Pipe
from pathlib import Path
from subprocess import PIPE
from types import TracebackType

import pytest

from litellm_messplus.conformance.encoders import CHECKS, TEXTS, FakeEncoder, check_same
from litellm_messplus.encoders import process, service, worker
from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.encoders.process import (
    EncoderProcessError,
    ProcessEncoder,
    load_for_requests,
    send,
)
from litellm_messplus.encoders.service import FeatureService
from litellm_messplus.prediction.encoder import Conversation, Encoder
from litellm_messplus.runtime.errors import ConfigurationError
from tests.support import slow_encoders
from tests.support.patience import PATIENT, until, until_it_holds
from tests.support.processes import children_of, is_running
from tests.support.tiny_encoder import save_onnx, save_static, save_transformer

ROOT = Path(__file__).parents[2]
TELLING = f"{slow_encoders.HERE}:Telling"


@pytest.fixture(scope="module", params=["transformer", "onnx"])
def setting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("encoder") / "tiny"
    if request.param == "onnx":
        return f"onnx:{save_onnx(folder)}"
    return str(save_transformer(folder))


@pytest.fixture(scope="module")
def encoder(setting: str) -> Iterator[Encoder]:
    with closing(started(setting)) as found:
        yield found


@pytest.fixture
def telling() -> Iterator[ProcessEncoder]:
    with closing(started(TELLING)) as found:
        yield found


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with a line for each encoder that was made."""
    monkeypatch.setenv(slow_encoders.STARTS, str(tmp_path / "starts"))
    return tmp_path / "starts"


@pytest.fixture
def short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "REST_SECONDS", 0.05)


def started(setting: str) -> ProcessEncoder:
    found = load_for_requests(setting)
    assert isinstance(found, ProcessEncoder)
    return found


def process_of(encoder: Encoder) -> int:
    return int(encoder.encode(["who are you?"])[0, 0])


def until_it_encodes(encoder: ProcessEncoder) -> list[EncoderProcessError]:
    """Ask again and again, until there is an answer; what was raised before."""
    raised = []

    def encodes() -> bool:
        try:
            encoder.encode(["again"])
        except EncoderProcessError as error:
            raised.append(error)
            return False
        return True

    until(encodes)
    return raised


def refusal(encoder: ProcessEncoder) -> str:
    """The error while there is no process that encodes."""
    with pytest.raises(EncoderProcessError) as raised:
        encoder.encode(["again"])
    return str(raised.value)


def test_it_gives_exactly_what_the_encoder_gives(encoder: Encoder, setting: str) -> None:
    here = load_encoder(setting)
    assert (encoder.dimension, encoder.is_fast) == (here.dimension, here.is_fast)
    check_same(here, encoder)
    long = Conversation.of_text(TEXTS["100,000 characters"])
    assert encoder.read(long) == here.read(long)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_passes_the_checks(encoder: Encoder, check: Callable[[Encoder], None]) -> None:
    check(encoder)


def test_the_libraries_of_an_encoder_stay_in_its_process(setting: str) -> None:
    code = f"""
import sys
from litellm_messplus.encoders.process import load_for_requests
encoder = load_for_requests({setting!r})
encoder.encode(["a"])
encoder.close()
sys.exit(bool({{"torch", "transformers", "onnxruntime", "tokenizers"}} & set(sys.modules)))
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_fast_has_no_process(tmp_path: Path) -> None:
    fast = ("hashed-ngrams", "none", f"static:{save_static(tmp_path)}")
    assert not any(isinstance(load_for_requests(setting), ProcessEncoder) for setting in fast)
    fake = load_for_requests("litellm_messplus.conformance.encoders:FakeEncoder")
    assert isinstance(fake, FakeEncoder)
    assert fake.batches == [1]  # and it was tried


@pytest.mark.parametrize(
    "setting",
    [
        "someone/no-such-encoder",
        "onnx:/no/such/folder",
        "static:/no/such/folder",
        "no.such.module:encoder",
        f"{slow_encoders.HERE}:Failing",
    ],
)
def test_what_cannot_be_loaded_is_refused_in_the_same_words(setting: str) -> None:
    with pytest.raises(ConfigurationError) as here:
        load_encoder(setting)
    with pytest.raises(ConfigurationError) as there:
        load_for_requests(setting)
    assert str(there.value) == str(here.value)
    assert (there.value.key, there.value.given) == ("messplus.encoder", setting)


def test_a_process_that_does_not_come_up_is_refused_too() -> None:
    with pytest.raises(ConfigurationError, match="ended with status 5") as raised:
        load_for_requests(f"{slow_encoders.HERE}:Unstartable")
    assert raised.value.key == "messplus.encoder"


def test_an_error_of_the_encoder_is_reported_with_its_place_and_ends_nothing(
    telling: ProcessEncoder,
) -> None:
    before = process_of(telling)
    with pytest.raises(EncoderProcessError, match="out of memory") as raised:
        telling.encode(["fail"])
    assert "slow_encoders.py" in raised.value.__notes__[0]
    assert process_of(telling) == before


@pytest.mark.usefixtures("short_rests")
@pytest.mark.parametrize(("end", "cause"), [("kill", "-9"), ("end", "3"), ("hang", "sent nothing")])
def test_a_process_that_ends_or_hangs_is_ended_and_replaced(
    end: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(started(TELLING)) as telling:
        before = process_of(telling)
        if end == "kill":
            os.kill(before, signal.SIGKILL)
        patience = 0.1 if end == "hang" else PATIENT
        with monkeypatch.context() as hasty:
            hasty.setattr(telling, "_patience_seconds", patience)
            with pytest.raises(EncoderProcessError, match=cause):
                telling.encode(["hang" if end == "hang" else "end"])
        assert not is_running(before)
        assert until_it_encodes(telling) != []
        assert process_of(telling) != before


@pytest.mark.usefixtures("short_rests")
def test_other_weights_that_come_up_are_not_used(starts: Path) -> None:
    with closing(started(f"{slow_encoders.HERE}:Retrained")) as encoder:
        with pytest.raises(EncoderProcessError):
            encoder.encode(["end"])
        until(lambda: "as it was" in refusal(encoder))


def test_a_process_that_never_comes_up_again_is_started_ever_more_rarely(
    starts: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(process, "REST_SECONDS", 0.2)
    monkeypatch.setattr(process, "LONGEST_REST_SECONDS", 0.6)
    with closing(started(f"{slow_encoders.HERE}:OnceOnly")) as encoder:
        began = time.perf_counter()
        with pytest.raises(EncoderProcessError):
            encoder.encode(["end"])
        until(lambda: bool(refusal(encoder)) and len(caplog.records) == 4)
        assert time.perf_counter() - began > 0.2 + 0.4 + 0.6
    rests = [record.getMessage().rpartition("after ")[2] for record in caplog.records]
    assert rests == ["0.2 s", "0.4 s", "0.6 s", "0.6 s"]
    assert starts.read_text().count("made") == 5


def test_closing_ends_what_another_thread_waits_for(
    telling: ProcessEncoder, tmp_path: Path
) -> None:
    child, raised, begun = process_of(telling), [], tmp_path / "begun"

    def ask() -> None:
        with pytest.raises(EncoderProcessError) as error:
            telling.encode([f"hang@{begun}"])
        raised.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    until(begun.exists)
    telling.close()
    thread.join(PATIENT)
    assert len(raised) == 1
    assert not is_running(child)
    with pytest.raises(EncoderProcessError, match="closed"):  # and it does not come back
        telling.encode(["a"])
    telling.close()


@pytest.mark.usefixtures("short_rests")
async def test_requests_do_without_features_until_the_process_is_there_again() -> None:
    errors: list[Exception] = []
    telling = started(TELLING)
    features = FeatureService(telling, failed=errors.append)

    async def ask(text: str) -> bool:
        return await features.features(Conversation.of_text(text), PATIENT) is not None

    assert await ask("first")
    assert not await ask("end")
    without = 0
    async with asyncio.timeout(PATIENT):
        while not await ask(f"again {without}"):
            without += 1
            await asyncio.sleep(0.02)
    await features.close()

    assert without >= 1
    assert len(errors) == features.statistics().failures == without + 1
    assert all(isinstance(error, EncoderProcessError) for error in errors)


@pytest.mark.parametrize("text", ["idle", "hang"])
async def test_a_stop_ends_the_process_whatever_it_is_at(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "CLOSE_SECONDS", 0.1)
    telling = started(TELLING)
    child, begun = process_of(telling), tmp_path / "begun"
    features = FeatureService(telling)
    conversation = Conversation.of_text(f"{text}@{begun}")
    waiting = asyncio.create_task(features.features(conversation, PATIENT))
    await until_it_holds(begun.exists if text == "hang" else waiting.done)
    await features.close()

    assert not is_running(child)
    assert (await waiting is None) == (text == "hang")


@pytest.mark.parametrize("text", ["idle", "hang"])
def test_it_ends_with_a_process_that_is_killed(text: str, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    code = f"""
from litellm_messplus.encoders.process import load_for_requests
encoder = load_for_requests({TELLING!r})
print(int(encoder.encode(["a"])[0, 0]), flush=True)
encoder.encode([{f"{text}@{begun}"!r}])
input()
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, cwd=ROOT) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        until(begun.exists)
        assert is_running(child)
        parent.kill()
    until(lambda: not is_running(child))


def test_the_signals_of_its_group_are_left_to_the_proxy(telling: ProcessEncoder) -> None:
    child = process_of(telling)
    for sign in (signal.SIGINT, signal.SIGTERM):
        os.kill(child, sign)
    assert process_of(telling) == child


def test_on_a_cpu_every_thread_of_it_gives_way(encoder: ProcessEncoder) -> None:
    encoder.encode(["a"])
    (child,) = children_of(os.getpid(), process.WORKER)
    threads = [int(path.name) for path in Path(f"/proc/{child}/task").iterdir()]
    assert {os.getpriority(os.PRIO_PROCESS, each) for each in threads} == {worker.NICENESS}


# What goes over the line, and what is left when the process is gone.


def test_the_other_end_gets_what_was_sent() -> None:
    texts = ["a text", "a lone surrogate \ud800", "x" * 100_000]
    ours, theirs = Pipe()
    with ours, theirs:
        sending = threading.Thread(target=send, args=(ours, texts))  # more than a pipe holds
        sending.start()
        assert theirs.recv() == texts
        sending.join()


def test_a_line_without_another_end_leaves_no_view_of_a_buffer_to_be_collected() -> None:
    ours, theirs = Pipe()
    theirs.close()
    with ours, pytest.raises(BrokenPipeError) as caught:
        send(ours, ["a text"])

    assert [view for view in views(caught.value.__traceback__) if type(view.obj) is not bytes] == []


def views(traceback: TracebackType | None) -> Iterator[memoryview]:
    """Those that the frames of a traceback hold."""
    while traceback is not None:
        found = traceback.tb_frame.f_locals.values()
        yield from (each for each in found if isinstance(each, memoryview))
        traceback = traceback.tb_next
