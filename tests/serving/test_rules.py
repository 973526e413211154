"""Rules before the choice: which requests they gate, and which are refused at the start."""

from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.page.charts import read_rules
from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.serving.deployments.index import build_zoos
from litellm_messplus.serving.deployments.rules import rule_of
from litellm_messplus.serving.surfaces.request import read_request
from litellm_messplus.settings.load import load_settings
from litellm_messplus.store.database import create_engine
from litellm_messplus.store.tables import requests
from tests.support.builders import build_zoo
from tests.support.in_process import deployment, url, written
from tests.support.journey import arguments_of, journey

SMALL, MEDIUM, LARGE = (f"openai/{name}" for name in ("small", "medium", "large"))
THREE = [
    deployment("small", 1e-7),
    deployment("medium", 1e-6),
    deployment("large", 1e-5),
]


def rule(candidates: list[str], **when: Any) -> dict[str, Any]:
    return {"when": {name.replace("__", "."): each for name, each in when.items()}} | {
        "candidates": candidates
    }


CODE = rule([MEDIUM, LARGE], metadata__task="code")
LEGAL = rule([LARGE], team=["legal", "audit"], tags="confidential")


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({"task": "code"}, CODE),
        ({"task": "prose"}, None),
        ({"task": ["code"]}, None),
        ({"task": {"code": 1}}, None),
        ({}, None),
        ({"user_api_key_team_id": "legal", "tags": ["confidential", "x"]}, LEGAL),
        ({"user_api_key_team_alias": "audit", "tags": ["confidential"]}, LEGAL),
        ({"user_api_key_team_id": "legal", "tags": ["public"]}, None),
        ({"user_api_key_team_id": "sales", "tags": ["confidential"]}, None),
        ({"user_api_key_team_id": "legal", "tags": "confidential"}, None),
        ({"task": "code", "user_api_key_team_id": "legal", "tags": ["confidential"]}, CODE),
    ],
)
def test_the_first_rule_counts_whose_conditions_all_hold(
    metadata: dict[str, Any], found: dict[str, Any] | None
) -> None:
    request = read_request([], arguments_of(metadata=metadata))
    assert request is not None
    got = rule_of(build_zoo(first=[CODE, LEGAL]), request)
    assert (None if got is None else list(got.candidates)) == (found and found["candidates"])


@pytest.mark.parametrize(
    ("wanted", "said"), [(True, True), (3, 3), (3, "3"), ("true", True), (["a", 3], 3)]
)
def test_values_are_compared_as_text(wanted: Any, said: Any) -> None:
    request = read_request([], arguments_of(metadata={"x": said}))
    assert request is not None
    assert rule_of(build_zoo(first=[rule([SMALL], metadata__x=wanted)]), request) is not None


@pytest.mark.parametrize("call_type", ["acompletion", "anthropic_messages", "aresponses"])
def test_a_key_is_its_alias_or_its_hash_on_every_surface(call_type: str) -> None:
    for name in ("alias", "hash"):
        given = {"user_api_key_alias": "alias", "user_api_key_hash": "hash"}
        request = read_request([], arguments_of(call_type=call_type, metadata=given))
        assert request is not None
        assert rule_of(build_zoo(first=[rule([SMALL], key=name)]), request) is not None


def refusal(*rules: dict[str, Any]) -> str:
    config = {"messplus": {"zoos": {"zoo": {"alpha": 0.7, "first": rules}}}}
    with pytest.raises(ConfigurationError) as caught:
        build_zoos(load_settings(config), THREE)
    return str(caught.value)


@pytest.mark.parametrize(
    ("rules", "word"),
    [
        ([rule(["openai/gone"], metadata__task="code")], "openai/gone"),
        ([rule([SMALL, MEDIUM, LARGE], metadata__task="code")], "fewer candidates than all"),
        ([rule([], metadata__task="code")], "candidates"),
        ([rule([SMALL])], "when"),
        ([rule([SMALL], task="code")], "metadata.NAME"),
        ([{"wen": {}, "when": {"key": "k"}, "candidates": [SMALL]}], "did you mean `when`"),
        ([rule([SMALL], metadata__="code")], "metadata.NAME"),
        (
            [rule([SMALL], metadata__task=[])],
            "first.0.when.metadata.task: given []; allowed: a text",
        ),
        ([rule([SMALL], tags={"in": ["a"]})], "first.0.when.tags: given {'in': ['a']}; allowed"),
        ([{"when": {"key": "k"}, "candidates": SMALL}], f"candidates: given '{SMALL}'; allowed: a"),
        ([CODE, CODE], "an earlier one always holds"),
        ([CODE, rule([LARGE], metadata__task="code", team="legal")], "an earlier one"),
        (
            [rule([LARGE], team=["legal", "audit"]), rule([SMALL], team="legal")],
            "an earlier one",
        ),
    ],
)
def test_a_rule_that_could_never_apply_is_refused(rules: list[dict[str, Any]], word: str) -> None:
    assert word in refusal(*rules)


def test_rules_that_may_each_be_first_are_allowed() -> None:
    rules = [rule([LARGE], team="legal"), rule([SMALL], team=["legal", "sales"]), CODE]
    config = {"messplus": {"zoos": {"zoo": {"alpha": 0.7, "first": rules}}}}
    assert len(build_zoos(load_settings(config), THREE)["zoo"].settings.first) == 3


async def test_a_rule_gates_the_others_and_is_counted(tmp_path: Path) -> None:
    async with journey(tmp_path, {"first": [CODE, LEGAL]}, THREE) as worker:
        worker.explores_nothing()
        for _ in range(5):
            asked = await worker.ask(metadata={"user_api_key_hash": "k", "task": "code"})
            assert asked.ranked[-1] == "small"
        given = {"user_api_key_team_id": "legal", "tags": ["confidential"]}
        forced = await worker.ask(metadata=given)
        await worker.ask(metadata={"task": "prose"})
        again = await worker.ask(arguments=forced.failed_at("large"))
        assert again.ranked[0] == "large"  # as any gate: rather again than one that may not
        await worker.settled()
        assert worker.counters == {}

    *code, legal, plain = await written(tmp_path, requests)
    name = "first: metadata.task code"
    assert {(tuple(row.eligible), tuple(row.gated_by)) for row in code} == {
        ((MEDIUM, LARGE), (name,))
    }
    assert {row.chosen for row in code} <= {MEDIUM, LARGE}
    assert (legal.reason, legal.chosen) == ("forced", LARGE)
    assert plain.eligible is None
    database = create_engine(url(tmp_path))
    async with database.connect() as connection:
        counted = await read_rules(connection, "zoo", "default")
        assert await read_rules(connection, "zoo", "other") == {}
    await database.dispose()
    assert counted == {name: 5, "first: team audit/legal, tags confidential": 1}


async def test_where_none_of_its_candidates_is_there_a_rule_is_passed_over(tmp_path: Path) -> None:
    async with journey(tmp_path, {"first": [LEGAL]}, THREE) as worker:
        given = {"user_api_key_team_id": "legal", "tags": ["confidential"]}
        asked = await worker.ask(metadata=given, deployments=THREE[:2])
        assert sorted(asked.ids) == ["medium", "small"]
        assert worker.counters == {"rules_unmet": 1}
        await worker.settled()
    (row,) = await written(tmp_path, requests)
    assert row.eligible is None


async def test_a_rule_and_a_cost_are_both_kept(tmp_path: Path) -> None:
    """Of the candidates that the rule leaves, the cost leaves one; none beyond them serves."""
    headers = {"headers": {"x-messplus-max-cost": "0.0005"}}
    zoo = {"first": [CODE], "callers_may": ["max_cost"]}
    async with journey(tmp_path, zoo, THREE) as worker:
        worker.explores_nothing()
        await worker.ask(metadata={"user_api_key_hash": "k", "task": "code", **headers})
        await worker.settled()
    (row,) = await written(tmp_path, requests)
    assert (row.chosen, row.eligible) == (MEDIUM, [MEDIUM])
    assert row.gated_by == ["first: metadata.task code", "max_cost"]
