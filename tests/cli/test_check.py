"""`messplus check`: what the proxy would refuse at its start, it refuses, with the same words."""

import asyncio
import hashlib
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from litellm.caching.caching import DualCache
from litellm.proxy.auth.master_key_boot_check import (
    PUBLICLY_KNOWN_MASTER_KEY_SHA256_DIGESTS as REFUSED_KEYS,
)
from litellm.router_utils.pre_call_checks.deployment_affinity_check import DeploymentAffinityCheck
from typer.testing import CliRunner, Result

from litellm_messplus.cli.main import app
from litellm_messplus.serving.configuration import STRATEGIES
from litellm_messplus.serving.litellm_fit import UnfitLitellmError, check_litellm
from litellm_messplus.serving.litellm_seam import proxy_configuration
from litellm_messplus.settings.load import KNOWN_KEY, PERMIT, VARIABLES, check_start, load_settings
from litellm_messplus.store.database import create_engine, migrate

ROOT = Path(__file__).parents[2]


def configuration(**zoo: Any) -> dict[str, Any]:
    """Of a zoo of two models, the cheaper one with two replicas."""
    return {
        "model_list": [
            {
                "model_name": "zoo",
                "litellm_params": {"model": f"openai/{name}"},
                "model_info": {"input_cost_per_token": price, "output_cost_per_token": 2 * price},
            }
            for name, price in (("small", 1e-6), ("small", 1e-6), ("large", 1e-5))
        ],
        "general_settings": {"master_key": "sk-of-this-test"},
        "litellm_settings": {"callbacks": ["litellm_messplus.plugin.instance"]},
        "messplus": {"zoos": {"zoo": {"alpha": 0.8, **zoo}}},
    }


def check(folder: Path, config: object, *given: str) -> Result:
    path = folder / "proxy_config.yaml"
    path.write_text(yaml.safe_dump(config))
    return CliRunner().invoke(app, ["check", "--config", str(path), *given])


def refusal(result: Result) -> str:
    assert result.exit_code == 1
    text = str(result.exception)
    assert "\n" not in text
    return text


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LITELLM_MASTER_KEY", "PLACE"):
        monkeypatch.delenv(name, raising=False)


def test_the_example_of_the_repository_would_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_MASTER_KEY", "sk-of-this-test")
    result = CliRunner().invoke(app, ["check", "--config", str(ROOT / "proxy_config.yaml")])

    assert result.exit_code == 0, result.exception
    assert "would start" in result.stdout


def test_candidates_replicas_and_prices_are_shown(tmp_path: Path) -> None:
    found = json.loads(check(tmp_path, configuration(), "--json").stdout)

    (zoo,) = found["zoos"]
    assert [(each["name"], each["replicas"]) for each in zoo["candidates"]] == [
        ("openai/small", 2),
        ("openai/large", 1),
    ]
    assert [each["completion"] for each in zoo["candidates"]] == pytest.approx([2.0, 20.0])
    assert [each["is_largest"] for each in zoo["candidates"]] == [False, True]
    assert zoo["alphas"] == {"default": 0.8}


def test_the_replicas_of_a_routing_group_are_those_of_its_members(tmp_path: Path) -> None:
    config = configuration(before="group:old", mode="watch")
    for given, name in zip(config["model_list"], ("new", "old", "old"), strict=True):
        given["model_name"] = name
    group = {"group_name": "zoo", "models": ["old", "new"], "routing_strategy": "simple-shuffle"}
    config["router_settings"] = {"routing_groups": [group]}

    (zoo,) = json.loads(check(tmp_path, config, "--json").stdout)["zoos"]
    assert [each["replicas"] for each in zoo["candidates"]] == [2, 1]


def test_a_zoo_without_another_source_of_labels_gets_a_note(tmp_path: Path) -> None:
    found = json.loads(check(tmp_path, configuration(), "--json").stdout)
    checked = configuration(labels={"checks": {"complete": True}})
    other = json.loads(check(tmp_path, checked, "--json").stdout)

    assert any("feedback alone" in note for note in found["zoos"][0]["notes"])
    assert other["zoos"][0]["labels"] == ["feedback", "check:complete"]
    assert other["zoos"][0]["notes"] == []


def test_a_price_that_is_left_out_next_to_another_is_noted(tmp_path: Path) -> None:
    config = configuration(labels={"checks": {"complete": True}})
    config["model_list"][2]["model_info"]["input_cost_per_token"] = None
    (zoo,) = json.loads(check(tmp_path, config, "--json").stdout)["zoos"]

    (note,) = zoo["notes"]
    assert note.endswith("openai/large")
    assert "a price that is left out is zero" in note


def with_router(**router_settings: Any) -> dict[str, Any]:
    return {**configuration(), "router_settings": router_settings}


CHECKS = "optional_pre_call_checks"
OVERRULES = "which overrule the routing of the zoo zoo"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (configuration(alpha=1.5), ["messplus.zoos.zoo.alpha"]),
        (configuration(alfa=0.5), ["alfa"]),
        (configuration(largest="openai/huge"), ["openai/huge"]),
        (configuration(buy_labels={"judge": "nobody"}), ["nobody"]),
        *(
            (
                with_router(routing_strategy=name),
                [f"router_settings.routing_strategy: given '{name}'"],
            )
            for name in ("usage-based-routing", "lar1", "provider-budget-routing")
        ),
        *(
            (
                with_router(optional_pre_call_checks=["router_budget_limiting", name]),
                [CHECKS, f"{name}, {OVERRULES}", "`model_group_affinity_config: {zoo: []}`"],
            )
            for name in ("session_affinity", "deployment_affinity")
        ),
        (
            with_router(
                optional_pre_call_checks=["responses_api_deployment_check", "session_affinity"]
            ),
            ["`model_group_affinity_config: {zoo: [responses_api_deployment_check]}`"],
        ),
        (
            with_router(model_group_affinity_config={"zoo": ["session_affinity"]}),
            ["router_settings.model_group_affinity_config"],
        ),
    ],
)
def test_what_the_start_refuses_is_refused_with_what_to_do(
    tmp_path: Path, config: dict[str, Any], expected: list[str]
) -> None:
    text = refusal(check(tmp_path, config))

    assert all(words in text for words in expected)


@pytest.mark.parametrize(
    "router_settings",
    [
        {CHECKS: ["responses_api_deployment_check", "prompt_caching"]},
        {CHECKS: ["session_affinity"], "model_group_affinity_config": {"zoo": []}},
        {CHECKS: ["deployment_affinity"], "model_group_affinity_config": {"zoo": []}},
        {"model_group_affinity_config": {"another": ["session_affinity"]}},
        {CHECKS: None, "model_group_affinity_config": None, "routing_strategy": None},
        *({"routing_strategy": name} for name in STRATEGIES),
    ],
    ids=str,
)
def test_what_overrules_nothing_is_taken(tmp_path: Path, router_settings: dict[str, Any]) -> None:
    result = check(tmp_path, with_router(**router_settings))

    assert result.exit_code == 0, result.exception


def test_an_unfit_litellm_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = metadata.version  # the package's own is read once for the whole process
    others = {"litellm": "1.99.0"}
    monkeypatch.setattr(metadata, "version", lambda name: others.get(name) or known(name))
    with pytest.raises(UnfitLitellmError) as refused:
        check_litellm()

    assert refusal(check(tmp_path, configuration())) == f"messplus: {refused.value}"


def test_mode_before_and_watch_are_shown(tmp_path: Path) -> None:
    watch = {"sample": 0.2, "budget_per_day": 2.0}
    config = configuration(mode="canary", share=0.25, before="openai/large", watch=watch)

    (zoo,) = json.loads(check(tmp_path, config, "--json").stdout)["zoos"]
    text = " ".join(check(tmp_path, config).stdout.split())

    assert (zoo["mode"], zoo["share"], zoo["before"]) == ("canary", 0.25, "openai/large")
    assert zoo["watch"] == watch
    assert "mode: canary of 0.25, before openai/large" in text
    assert "20 % is called unseen, for 2 usd a day at most" in text


def test_a_zoo_that_nobody_watched_says_so_and_nothing_is_opened(tmp_path: Path) -> None:
    config = configuration()
    config["messplus"]["database"] = f"sqlite+aiosqlite:///{tmp_path / 'messplus.db'}"

    text = " ".join(check(tmp_path, config).stdout.split())

    assert "mode: on, before nothing: no way back" in text
    assert "2 % is called unseen, without a budget" in text
    assert not (tmp_path / "messplus.db").exists()


def test_an_encoder_that_is_not_there_is_refused_unless_left_out(tmp_path: Path) -> None:
    config = configuration()
    config["messplus"]["encoder"] = f"static:{tmp_path / 'nothing'}"

    assert "nothing" in refusal(check(tmp_path, config))
    assert check(tmp_path, config, "--no-encoder").exit_code == 0


@pytest.mark.parametrize("content", ["", "- a list", "a: [unclosed"])
def test_what_is_no_configuration_is_refused_in_a_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(content)

    result = CliRunner().invoke(app, ["check", "--config", str(path)])

    assert str(path) in refusal(result)


def test_at_litellm_the_remedy_turns_both_off_for_the_zoo_alone() -> None:
    affinity = DeploymentAffinityCheck(
        cache=DualCache(),
        ttl_seconds=60,
        enable_user_key_affinity=True,
        enable_responses_api_affinity=False,
        enable_session_id_affinity=True,
        model_group_affinity_config={"zoo": []},
    )

    assert affinity._get_effective_flags("zoo") == (False, False, False)
    assert affinity._get_effective_flags("another") == (True, False, True)


def written(folder: Path, **files: Any) -> None:
    for name, content in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(content))


WHOLE = configuration()
REST = {name: WHOLE[name] for name in WHOLE if name not in ("messplus", "model_list")}
OURS: dict[str, Any] = {"messplus": {**WHOLE["messplus"], "database": "os.environ/PLACE"}}
HERE = {"environment_variables": {"PLACE": "sqlite+aiosqlite:///here.db"}}
THERE = "sqlite+aiosqlite:///there.db"
FILES: dict[str, dict[str, Any]] = {
    "nested": {"model_list": [], "include": ["deep.yaml"]},
    "sub__deep": OURS,
    "models": {"model_list": WHOLE["model_list"]},
}


@pytest.mark.parametrize(
    ("config", "place", "expected"),
    [
        ({**WHOLE, **OURS, **HERE}, None, "here.db"),
        ({**WHOLE, **OURS, **HERE}, THERE, "here.db"),
        ({**WHOLE, **OURS}, THERE, "there.db"),
        ({**REST, **HERE, "include": ["models.yaml", "sub/deep.yaml"]}, None, "here.db"),
        ({**REST, **HERE, "include": ["sub/nested.yaml", "models.yaml"]}, None, "here.db"),
        ({**WHOLE, **OURS}, None, "messplus.database: given 'os.environ/PLACE'"),
        ({**REST, **OURS, "include": "models.yaml"}, THERE, "must be a list"),
        ({**REST, **OURS, "include": ["nowhere.yaml"]}, THERE, "nowhere.yaml"),
    ],
)
def test_a_file_is_read_as_the_start_reads_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    config: dict[str, Any],
    place: str | None,
    expected: str,
) -> None:
    written(tmp_path, sub__nested=FILES["nested"], **FILES)
    if place is not None:
        monkeypatch.setenv("PLACE", place)

    result = check(tmp_path, config, "--json")
    told = str(result.exception) if result.exit_code else json.loads(result.stdout)["database"]

    assert expected in told
    assert proxy_database(tmp_path, monkeypatch) in (told, "")


def proxy_database(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The database after LiteLLM itself has read the file at a start; empty if it cannot."""
    from litellm.proxy import proxy_server  # after `check`, which bears its warnings

    reader = proxy_server.ProxyConfig()
    monkeypatch.setattr(proxy_server, "proxy_config", reader)
    try:
        config = asyncio.run(reader.get_config(str(folder / "proxy_config.yaml")))
        for name, value in (config.get("environment_variables") or {}).items():
            monkeypatch.setenv(name, value)  # as `load_config` does before it loads callbacks
        return str(load_settings(proxy_configuration()).database)
    except Exception:
        return ""


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({**WHOLE, "general_settings": {}}, "master_key: given 'none'"),
        ({**WHOLE, "general_settings": {"master_key": "os.environ/PLACE"}}, "given 'none'"),
        ({**WHOLE, "general_settings": {"master_key": " sk-1234 "}}, "that everybody knows"),
        ({**WHOLE, "litellm_settings": None}, "litellm_settings.callbacks"),
        (configuration(aplha=1), "did you mean `alpha`?"),
        ({**WHOLE, "messplus": {**OURS["messplus"], "database": "${PLACE}"}}, "given '${PLACE}'"),
        ({**WHOLE, **OURS, VARIABLES: {"PLACE": "sqlite+aiosqlite:////no/x"}}, "/no/x is not"),
    ],
)
def test_a_refusal_is_before_litellm(tmp_path: Path, config: dict[str, Any], expected: str) -> None:
    written(tmp_path, proxy_config=config)
    asking = (
        "import sys; from litellm_messplus.cli.main import app\n"
        "try: app(['check', '--config', 'proxy_config.yaml'])\n"
        "finally: assert 'litellm' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", asking], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_known_key_is_the_one_that_litellm_refuses() -> None:
    assert {hashlib.sha256(KNOWN_KEY.encode()).hexdigest()} == REFUSED_KEYS


def test_a_weak_key_that_litellm_is_told_to_permit_is_taken() -> None:
    check_start({**WHOLE, "general_settings": {"master_key": KNOWN_KEY, PERMIT: True}})


def with_database(folder: Path) -> dict[str, Any]:
    config = configuration()
    config["messplus"]["database"] = f"sqlite+aiosqlite:///{folder / 'messplus.db'}"
    return config


def notes(result: Result) -> str:
    assert result.exit_code == 0, result.exception
    return " ".join(json.loads(result.stdout)["notes"])


def made(config: dict[str, Any]) -> sqlite3.Connection:
    """Make its database, and open it."""
    url = config["messplus"]["database"]

    async def migrated() -> None:
        engine = create_engine(url)
        await migrate(engine)
        await engine.dispose()

    asyncio.run(migrated())
    return sqlite3.connect(url.partition("///")[2])


def test_a_database_that_is_not_there_is_noted(tmp_path: Path) -> None:
    config = with_database(tmp_path)
    assert "there is no database" in notes(check(tmp_path, config, "--json"))

    made(config).close()
    assert "database" not in notes(check(tmp_path, config, "--json"))


def test_a_database_of_another_version_is_refused_as_the_start_refuses_it(tmp_path: Path) -> None:
    config = with_database(tmp_path)
    with closing(made(config)) as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
        database.commit()

    assert "its revision 9999 is not known here" in refusal(check(tmp_path, config))
