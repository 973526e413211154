"""From `messplus profile` to joules in the log; the meter is simulated, all else is real."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from litellm_messplus.energy.profile import EnergyProfile, load_profile
from tests.support.proxy import Config, Proxy
from tests.support.simulated_meter import IDLE_WATTS, Joules, described
from tests.support.vllm_server import VllmServer
from tests.vllm.client import Client
from tests.vllm.conftest import Servers
from tests.vllm.operator_config import ROOT, ZOO, tiny_zoo_config

pytestmark = pytest.mark.vllm

TRUE = {
    "tiny-small": Joules(prompt_token=0.002, completion_token=0.05, request=0.2),
    "tiny-medium": Joules(prompt_token=0.012, completion_token=0.3, request=0.5),
    "tiny-large": Joules(prompt_token=0.08, completion_token=2.4, request=1.0),
}
"""What the simulated meter says that each model takes."""

GRID = {
    "prompt-tokens": "32,128,256",
    "completion-tokens": "8,32,96",
    "concurrency": "1,4",
    "serving-concurrency": "4",
    "repeats": "2",
    "seconds": "0.5",
    "idle-windows": "3",
}
WITHIN = 0.1
REQUESTS = 20
Profiles = dict[str, Path]


def make_profile(server: VllmServer, path: Path) -> None:
    """As an operator does, on the command line."""
    options = {**GRID, "url": f"{server.url}/v1", "model": server.name, "out": str(path)}
    command = [str(Path(sys.executable).parent / "messplus"), "profile"]
    command += ["--meter", "tests.support.simulated_meter:open_meter"]
    command += [part for name, value in options.items() for part in (f"--{name}", value)]
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, **described(server.url, TRUE[server.name])}
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def profiles(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Profiles:
    """The file of each model, measured one after the other."""
    folder = tmp_path_factory.mktemp("profiles")
    paths = {name: folder / f"{name}.energy.yaml" for name in servers}
    for name, server in servers.items():
        make_profile(server, paths[name])
    return paths


@pytest.fixture(scope="module")
def config(servers: Servers, profiles: Profiles) -> Config:
    """The operator's configuration, counting in joules: profiles in place of prices."""
    counting = tiny_zoo_config({name: server.url for name, server in servers.items()})
    for deployment in counting["model_list"]:
        name = deployment["litellm_params"]["model"].removeprefix("hosted_vllm/")
        deployment["model_info"] = {"messplus": {"energy_profile": str(profiles[name])}}
    counting["messplus"]["zoos"][ZOO]["cost_unit"] = "joule"
    return counting


def profile_of(name: str, profiles: Profiles) -> EnergyProfile:
    return load_profile(profiles[name], model=name)


@pytest.mark.parametrize("name", TRUE)
def test_the_profile_of_a_real_server_recovers_the_joules_that_each_token_takes(
    name: str, profiles: Profiles
) -> None:
    profile = profile_of(name, profiles)

    assert profile.joules_per_prompt_token == pytest.approx(TRUE[name].prompt_token, rel=WITHIN)
    assert profile.joules_per_completion_token == pytest.approx(
        TRUE[name].completion_token, rel=WITHIN
    )
    assert profile.idle_watts == pytest.approx(IDLE_WATTS, rel=WITHIN)


def test_the_log_holds_the_joules_that_the_work_of_the_servers_took(
    client: httpx.Client, proxy: Proxy, servers: Servers, profiles: Profiles
) -> None:
    before = {name: server.work_done() for name, server in servers.items()}
    asking = Client(client)

    answers = [asking.ask() for _ in range(REQUESTS)]

    assert {answer.status_code for answer in answers} == {200}
    explored = len(servers) - 1  # the first request calls the others too
    calls = proxy.wait_for_rows("SELECT * FROM calls", REQUESTS + explored)
    for name, server in servers.items():
        own = [call for call in calls if call["candidate"] == f"hosted_vllm/{name}"]
        profile = profile_of(name, profiles)
        for call in own:
            estimate = profile.joules(call["prompt_tokens"], call["completion_tokens"])
            assert call["cost"] == pytest.approx(estimate)
        true = TRUE[name].of(server.work_done() - before[name])
        assert sum(call["cost"] for call in own) == pytest.approx(true, rel=WITHIN)
