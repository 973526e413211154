"""A configuration that cannot be honoured stops the start, with one message that says why."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.proxy import Config, Proxy, deployment, zoo_config

pytestmark = pytest.mark.end_to_end


def alpha(config: Config, folder: Path) -> None:
    config["messplus"]["zoos"]["zoo"] = {"alpha": 1.5}


def unknown_key(config: Config, folder: Path) -> None:
    config["messplus"]["zoos"]["zoo"] = {"alpha": 0.7, "aplha": 0.7}


def unread_setting(config: Config, folder: Path) -> None:
    config["messplus"]["zoos"]["zoo"] = {"alpha": 0.7, "policy": "adaptive", "V": 1.0}


def no_deployment(config: Config, folder: Path) -> None:
    config["messplus"]["zoos"]["llamas"] = {"alpha": 0.7}


def one_candidate(config: Config, folder: Path) -> None:
    replica = deployment("zoo", "tiny", "http://127.0.0.1:9/v1", 1e-6)
    config["model_list"] = [config["model_list"][0], replica]


def no_price(config: Config, folder: Path) -> None:
    config["model_list"][1]["model_info"] = {}


def joules_without_energy(config: Config, folder: Path) -> None:
    config["messplus"]["zoos"]["zoo"] = {"alpha": 0.7, "cost_unit": "joule"}


def no_such_folder(config: Config, folder: Path) -> None:
    config["messplus"]["database"] = f"sqlite+aiosqlite:///{folder}/missing/messplus.db"


def newer_database(config: Config, folder: Path) -> None:
    connection = sqlite3.connect(folder / "messplus.db")
    connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)")
    connection.execute("INSERT INTO alembic_version VALUES ('9999')")
    connection.commit()
    connection.close()


def no_such_check(config: Config, folder: Path) -> None:
    checks = {"callables": {"own": {"callable": "no_such_module:check"}}}
    config["messplus"]["zoos"]["zoo"] = {"alpha": 0.7, "labels": {"checks": checks}}


def no_section(config: Config, folder: Path) -> None:
    del config["messplus"]


@pytest.mark.parametrize(
    ("spoil", "key", "given", "allowed"),
    [
        (alpha, "messplus.zoos.zoo.alpha", "1.5", "greater than 0 and less than 1"),
        (unknown_key, "messplus.zoos.zoo.aplha", "0.7", "known here: V, alpha, c"),
        (unread_setting, "messplus.zoos.zoo", "adaptive", "without V, which only `policy: paper`"),
        (no_deployment, "messplus.zoos.llamas", "llamas", "(there: zoo)"),
        (one_candidate, "messplus.zoos.zoo", "openai/tiny", "at least two different models"),
        (no_price, "model_list, zoo (openai/middle)", "no price", "`input_cost_per_token`"),
        (
            joules_without_energy,
            "model_list, zoo",
            "a price in USD alone",
            "`joules_per_prompt_token`",
        ),
        (no_such_folder, "messplus.database", "missing", "unable to open database file"),
        (newer_database, "messplus.database", "messplus.db", "revision 9999 is not known"),
        (
            no_such_check,
            "messplus.zoos.zoo.labels.checks.callables.own.callable",
            "no_such_module:check",
            "No module named 'no_such_module'",
        ),
        (no_section, "messplus", "None", "a section with `zoos:` in it"),
    ],
)
def test_bad_configuration_stops_the_start(
    tmp_path: Path,
    spoil: Callable[[Config, Path], None],
    key: str,
    given: str,
    allowed: str,
) -> None:
    config = zoo_config("http://127.0.0.1:9/v1", tmp_path)
    spoil(config, tmp_path)
    proxy = Proxy(config, tmp_path)

    status = proxy.launch().wait(timeout=60)

    assert status != 0
    _, message = proxy.log.split("messplus: the configuration cannot be honoured.")
    assert key in message
    assert given in message
    assert allowed in message
    assert "Traceback" not in message
