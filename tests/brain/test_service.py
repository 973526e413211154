"""`messplus brain`: a brain for several machines, as a process that proxies reach over TCP."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from litellm_messplus.brain.place import TOKEN, BrainSettings, brain_settings
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.deployments.index import configured_zoos
from litellm_messplus.serving.link import reach
from litellm_messplus.settings.load import load_settings
from tests.support.patience import PATIENT, until
from tests.support.ports import free_port
from tests.support.proxy import zoo_config


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BrainSettings:
    """What the service of a configuration in the folder is started with."""
    monkeypatch.setenv(TOKEN, "secret")
    brain = f"tcp://127.0.0.1:{free_port()}"
    config = zoo_config("http://127.0.0.1:9/v1", tmp_path, brain=brain)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    settings = load_settings(config)
    return brain_settings(settings, configured_zoos(settings, config))


@contextmanager
def service(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(Path(sys.executable).parent / "messplus"), "brain", "--config"]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with (folder / "brain.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, str(folder / "config.yaml")], env=environment, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENT) == 0, (folder / "brain.log").read_text()


async def test_it_is_reached_with_its_token(given: BrainSettings, tmp_path: Path) -> None:
    with service(tmp_path):
        assert await reach(given, PATIENT) == 0
        with pytest.raises(ConfigurationError, match="the token is another one"):
            await reach(replace(given, token="guessed"), 0.0)


async def test_a_second_one_takes_its_place(given: BrainSettings, tmp_path: Path) -> None:
    with ExitStack() as first:
        first.enter_context(service(tmp_path))
        assert await reach(given, PATIENT) == 0
        with service(tmp_path):
            waits_in(tmp_path)
            first.close()
            assert await reach(given, PATIENT) == 0


async def test_one_that_waits_ends_at_a_signal(given: BrainSettings, tmp_path: Path) -> None:
    with service(tmp_path):
        assert await reach(given, PATIENT) == 0
        with service(tmp_path):
            waits_in(tmp_path)


def waits_in(folder: Path) -> None:
    until(lambda: "this one waits" in (folder / "brain.log").read_text())


def test_an_address_needs_a_token(given: BrainSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN)
    with pytest.raises(ConfigurationError, match=TOKEN):
        brain_settings(given.settings, given.zoos)


def test_a_brain_finds_the_file_of_its_worker(given: BrainSettings) -> None:
    """Named by a part of the driver's name, too."""
    settings = given.settings.model_copy(update={"database": "sqlite+aiosqlite:///lite?timeout=9"})
    found = brain_settings(settings, given.zoos).settings.database
    assert found == f"sqlite+aiosqlite:///{Path.cwd()}/lite?timeout=9"
