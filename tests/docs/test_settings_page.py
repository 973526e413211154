"""`docs/settings.md` describes every setting with its default, and no other."""

import re
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from litellm_messplus.proxy.router import NAME_KEY
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
from litellm_messplus.settings.schema import (
    ElectricitySettings,
    MessplusSettings,
    RetentionSettings,
    ServiceLevelSettings,
    ZooSettings,
)
from tests.docs.markdown import ROOT, Document, code_of

PACKAGE = ROOT / "litellm_messplus"
SETTINGS = Document(ROOT / "docs" / "settings.md")

SETTING_MODELS: dict[str, type[BaseModel]] = {
    "": MessplusSettings,
    "retention.": RetentionSettings,
    "zoos.<zoo>.": ZooSettings,
    "zoos.<zoo>.electricity.": ElectricitySettings,
    "zoos.<zoo>.service_levels.<level>.": ServiceLevelSettings,
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
def test_the_default_of_a_setting_is_the_one_described(key: str) -> None:
    field = every_setting()[key]
    cell = described_settings()[key]["Default"]

    if field.is_required():
        assert cell == "required"
        return
    default = field.get_default(call_default_factory=True, validated_data={})
    code = code_of(cell)
    if default is None or default == RUBRIC:  # said in words: what stands in for it
        assert code is None
        assert cell
    else:
        assert code is not None
        assert yaml.safe_load(code) == plain(default)


def plain(default: object) -> object:
    """As it would stand in YAML; a section is what it says that is not a default."""
    if isinstance(default, BaseModel):
        return default.model_dump(exclude_defaults=True)
    return list(default) if isinstance(default, tuple) else default


@pytest.mark.parametrize("key", every_setting())
def test_named_choices_are_listed(key: str) -> None:
    choices = get_args(every_setting()[key].annotation)

    for choice in choices:
        if isinstance(choice, str):
            assert f"`{choice}`" in described_settings()[key]["Allowed"]


def test_what_a_deployment_and_a_key_may_say_is_described() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "proxy").rglob("*.py"))
    read = set(re.findall(r'"(joules_per_\w+)"', source))
    read |= set(re.findall(r'own_info\(\w+\)\.get\("(\w+)"\)', source))

    described = {key for key in described_settings() if key.startswith(DEPLOYMENT_SETTINGS)}
    assert described == {DEPLOYMENT_SETTINGS + name for name in read}
    assert NAME_KEY in SETTINGS.text


def test_environment_variables_are_described() -> None:
    pattern = re.compile(r"\"(MESSPLUS_\w+|LITELLM_MASTER_KEY)\"")
    for folder in (PACKAGE, ROOT / "migrations"):
        for path in folder.rglob("*.py"):
            for name in pattern.findall(path.read_text(encoding="utf-8")):
                assert f"`{name}`" in SETTINGS.text
