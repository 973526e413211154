"""The compose file, read as Compose reads it: its own tool and images are not needed here."""

import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from litellm_messplus.serving.deployments.index import build_zoos
from litellm_messplus.settings.load import load_settings
from tests.support.markdown import ROOT

FILE = ROOT / "deploy" / "compose.yaml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text())
PROXY, POSTGRES = COMPOSE["services"]["proxy"], COMPOSE["services"]["postgres"]
SET = {"LITELLM_MASTER_KEY": "sk-1", "POSTGRES_PASSWORD": "secret"}


def filled(value: str) -> str:
    """The value with the variables that the file demands, as Compose fills them in."""
    return re.sub(r"\$\{(\w+)[^}]*\}", lambda found: SET[found[1]], value)


def test_compose_itself_accepts_the_file() -> None:
    docker = shutil.which("docker")
    command = [docker or "docker", "compose"]
    if docker is None or subprocess.run([*command, "version"], capture_output=True).returncode:
        pytest.skip("Docker Compose is not installed")
    done = subprocess.run(
        [*command, "--file", str(FILE), "config", "--quiet"],
        env=SET,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_its_configuration_can_be_honoured() -> None:
    config = yaml.safe_load(COMPOSE["configs"]["proxy_config"]["content"])
    config["messplus"]["database"] = filled(PROXY["environment"]["MESSPLUS_DATABASE"])

    assert build_zoos(load_settings(config), config["model_list"])


def test_every_variable_of_the_configuration_is_set_and_every_secret_is_demanded() -> None:
    content = COMPOSE["configs"]["proxy_config"]["content"]

    assert set(re.findall(r"os\.environ/(\w+)", content)) == PROXY["environment"].keys()
    assert "$" not in content  # Compose would fill it in
    named = re.findall(r"\$\{(\w+):\?[^}]+\}", FILE.read_text())
    assert set(named) == SET.keys()
    assert len(named) == FILE.read_text().count("${")


def test_the_proxy_finds_its_database_and_its_configuration() -> None:
    user, password, host, name = re.fullmatch(  # type: ignore[union-attr]
        r"postgresql\+asyncpg://(\w+):(\w+)@(\w+)/(\w+)",
        filled(PROXY["environment"]["MESSPLUS_DATABASE"]),
    ).groups()
    made = {key: filled(value) for key, value in POSTGRES["environment"].items()}

    assert COMPOSE["services"][host] is POSTGRES
    assert made == {
        "POSTGRES_USER": user,
        "POSTGRES_PASSWORD": password,
        "POSTGRES_DB": name,
    }
    (mounted,) = PROXY["configs"]
    assert mounted["source"] in COMPOSE["configs"]
    assert mounted["target"] in PROXY["command"]


def test_postgres_keeps_its_data_in_a_volume_and_is_awaited() -> None:
    (volume,) = POSTGRES["volumes"]

    assert volume.partition(":")[0] in COMPOSE["volumes"]
    assert PROXY["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert POSTGRES["healthcheck"]


def test_the_image_is_built_from_this_checkout() -> None:
    context = FILE.parent / PROXY["build"]["context"]
    dockerfile = (context / PROXY["build"]["dockerfile"]).read_text()

    for name in PROXY["build"]["args"]:
        assert re.search(rf"^ARG {name}\b", dockerfile, re.MULTILINE)
    assert "/messplus/ready" in " ".join(PROXY["healthcheck"]["test"])
