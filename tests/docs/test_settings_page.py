"""`docs/settings.md` describes every setting in the words of the code, and no other.

Key, default and meaning of a row come from the code, and so does what a number, a yes or a named
choice may be; a failure shows the row to paste. Links, and words for what no type says (a path, a
name), are the page's own."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from litellm_messplus.cli import options
from litellm_messplus.proxy.deployments.deployment import candidate_of
from litellm_messplus.proxy.deployments.energy_sources import measured_deployment
from litellm_messplus.proxy.deployments.prices import energy_price, stated_dollars
from litellm_messplus.proxy.reading import NAME_KEY
from litellm_messplus.settings.labels import (
    RUBRIC,
    AutoSettings,
    CallableCheckSettings,
    ChecksSettings,
    ImplicitSettings,
    JudgeSettings,
    LabelsSettings,
    ParitySettings,
)
from litellm_messplus.settings.policies import LatencySettings
from litellm_messplus.settings.schema import (
    MessplusSettings,
    RetentionSettings,
    ServiceLevelSettings,
    ZooSettings,
)
from litellm_messplus.settings.serving import (
    AlertsSettings,
    ConversationsSettings,
    ElectricitySettings,
    WatchSettings,
)
from tests.support.markdown import ROOT, Document, code_of

SETTINGS = Document(ROOT / "docs" / "settings.md")

SETTING_MODELS: dict[str, type[BaseModel]] = {
    "": MessplusSettings,
    "retention.": RetentionSettings,
    "zoos.<zoo>.": ZooSettings,
    "zoos.<zoo>.electricity.": ElectricitySettings,
    "zoos.<zoo>.watch.": WatchSettings,
    "zoos.<zoo>.latency.": LatencySettings,
    "alerts.": AlertsSettings,
    "zoos.<zoo>.service_levels.<level>.": ServiceLevelSettings,
    "zoos.<zoo>.conversations.": ConversationsSettings,
    "zoos.<zoo>.labels.": LabelsSettings,
    "zoos.<zoo>.labels.checks.": ChecksSettings,
    "zoos.<zoo>.labels.checks.callables.<check>.": CallableCheckSettings,
    "zoos.<zoo>.labels.judge.": JudgeSettings,
    "zoos.<zoo>.labels.parity.": ParitySettings,
    "zoos.<zoo>.labels.auto.": AutoSettings,
    "zoos.<zoo>.labels.implicit.": ImplicitSettings,
}
DEPLOYMENT_SETTINGS = "model_info.messplus."


def every_setting() -> dict[str, FieldInfo]:
    return {
        prefix + name: field
        for prefix, model in SETTING_MODELS.items()
        for name, field in model.model_fields.items()
    }


def described_settings() -> dict[str, dict[str, str]]:
    """The row of each setting by its key; no key has two."""
    rows = [row.cells for row in SETTINGS.rows if "Setting" in row.cells]
    found = {code_of(cells["Setting"]) or "": cells for cells in rows}
    assert len(found) == len(rows)
    return found


def test_every_setting_is_described_and_no_other() -> None:
    in_section = {key for key in described_settings() if not key.startswith(DEPLOYMENT_SETTINGS)}

    assert in_section == set(every_setting())


@pytest.mark.parametrize("key", every_setting())
def test_a_setting_is_described_in_the_words_of_the_code(key: str) -> None:
    cells = described_settings()[key]
    meant = str(every_setting()[key].description)

    assert row(key, cells) == row(
        key,
        {
            "Allowed": allowed(schema_of(key)) or cells["Allowed"],
            "Default": default_of(every_setting()[key]) or cells["Default"],
            "Meaning": cells["Meaning"] if unlinked(cells["Meaning"]) == meant else meant,
        },
    )


@pytest.mark.parametrize("key", every_setting())
def test_what_stands_in_for_a_missing_value_is_said_in_words(key: str) -> None:
    if default_of(every_setting()[key]) is None:
        cell = described_settings()[key]["Default"]
        assert cell
        assert code_of(cell) is None


def row(key: str, cells: dict[str, str]) -> str:
    return f"| `{key}` | {cells['Allowed']} | {cells['Default']} | {cells['Meaning']} |"


def unlinked(cell: str) -> str:
    """The text of a cell without the targets of its links."""
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", cell)


def default_of(field: FieldInfo) -> str | None:
    """The cell of a default; None for one that is said in words: what stands in for it."""
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True, validated_data={})
    return None if default is None or default == RUBRIC else f"`{in_yaml(plain(default))}`"


def plain(default: object) -> object:
    """As it would stand in YAML; a section is what it says that is not a default."""
    if isinstance(default, BaseModel):
        return default.model_dump(exclude_defaults=True)
    return [*map(str, default)] if isinstance(default, tuple) else default


def in_yaml(value: object) -> str:
    text = (
        str(value)
        if isinstance(value, str | float)
        else yaml.safe_dump(value, default_flow_style=True)
    )
    return text.removesuffix("...\n").strip()


def schema_of(key: str) -> dict[str, Any]:
    """The JSON schema of a setting, without the None that leaves it out."""
    prefix = max((each for each in SETTING_MODELS if key.startswith(each)), key=len)
    model = SETTING_MODELS[prefix].model_json_schema()
    found = model["properties"][key.removeprefix(prefix)]
    kinds = [kind for kind in found.get("anyOf", [found]) if kind.get("type") != "null"]
    if all("$ref" in kind for kind in kinds):
        kinds = [model["$defs"][kind["$ref"].rpartition("/")[2]] for kind in kinds]
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def allowed(schema: dict[str, Any]) -> str | None:
    """What may be given, as far as the type says it; None where words must."""
    if "anyOf" in schema:
        parts = [allowed(kind) for kind in schema["anyOf"]]
        return None if None in parts else ", or ".join(map(str, parts))
    if "const" in schema or "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "boolean":
        return "`true` or `false`"
    return bounds(schema) if schema.get("type") in ("number", "integer") else None


def bounds(schema: dict[str, Any]) -> str:
    if "minimum" in schema and "maximum" in schema:
        return f"{schema['minimum']:g} to {schema['maximum']:g}"
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "greater than",
        "maximum": "at most",
        "exclusiveMaximum": "less than",
    }
    found = [f"{word} {schema[name]:g}" for name, word in words.items() if name in schema]
    return ", ".join(found) or f"any {schema['type']}"


class Noted(dict[str, object]):
    """What a deployment says of its own, which notes the keys that it is asked for."""

    def __init__(self, **given: object) -> None:
        super().__init__(given)
        self.asked: set[str] = set()

    def get(self, key: str, default: object = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


def test_what_a_deployment_and_a_key_may_say_is_described() -> None:
    own = Noted(candidate="llama")
    deployment = {
        "model_name": "zoo",
        "litellm_params": {"model": "openai/llama"},
        "model_info": {"messplus": own, "input_cost_per_token": 1e-6},
    }
    candidate_of(deployment)
    energy_price(deployment)
    stated_dollars(deployment)
    measured_deployment(deployment)

    described = {key for key in described_settings() if key.startswith(DEPLOYMENT_SETTINGS)}
    assert described == {DEPLOYMENT_SETTINGS + name for name in own.asked}
    assert NAME_KEY in SETTINGS.text


@pytest.mark.parametrize("name", [options.VARIABLE, "MESSPLUS_DATABASE"])
def test_environment_variables_are_described(name: str) -> None:
    assert f"`{name}`" in SETTINGS.text


def test_the_variable_of_the_alembic_command_names_its_database(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'named.db'}"
    command = [sys.executable, "-m", "alembic", "upgrade", "head"]
    environment = {**os.environ, "MESSPLUS_DATABASE": url}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)

    assert (tmp_path / "named.db").stat().st_size > 0
