"""The tables of docs/settings.md, printed from the settings: `make docs`.

The page decides where a setting stands, by a row that begins with its key; this prints the rest of
the row. Rows of `model_info` are the page's own.
"""

import re
from collections.abc import Iterator
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from litellm_messplus.settings.promise import Promise
from litellm_messplus.settings.schema import MessplusSettings

NAMES = {"zoos": "<zoo>"}
"""Placeholders for the names that the operator chooses, below these settings."""
ROW = re.compile(r"^\| `(?!model_info\.)([^`]+)` \|.*$", re.MULTILINE)
TABLE = re.compile(r"^\| Setting \|.*\n\| --- .*\n((?:\|.*\n)*)", re.MULTILINE)


class Setting(NamedTuple):
    """One setting: its key in the page, and the section of which it is a field."""

    key: str
    section: type[BaseModel]
    field: FieldInfo

    @property
    def below(self) -> type[BaseModel] | None:
        """The section that it contains, None if it is a value."""
        return _section_in(self.field.annotation)

    @property
    def row(self) -> str:
        words = self.field.json_schema_extra
        extra: dict[str, Any] = words if isinstance(words, dict) else {}
        allowed = extra.get("allowed") or self._allowed()
        default = extra.get("default_words") or self._default()
        return f"| `{self.key}` | {allowed} | {default} | {self.field.description} |"

    def _allowed(self) -> str:
        whole = self.section.model_json_schema()
        found = whole["properties"][self.key.rpartition(".")[2]]
        kinds = [kind for kind in found.get("anyOf", [found]) if kind.get("type") != "null"]
        named = [whole["$defs"][_name(kind)] if "$ref" in kind else kind for kind in kinds]
        return ", or ".join(map(_kind, named))

    def _default(self) -> str:
        if self.field.is_required():
            return "required"
        default = self.field.get_default(call_default_factory=True, validated_data={})
        if isinstance(default, BaseModel):
            return "`{}`"
        if default is None:
            return "none"
        plain = [*map(str, default)] if isinstance(default, tuple) else default
        is_bare = isinstance(plain, str | float)
        text = str(plain) if is_bare else yaml.safe_dump(plain, default_flow_style=True)
        plainer = text.removesuffix("...\n").strip()
        return f"`{plainer}`"


def every_setting(
    section: type[BaseModel] = MessplusSettings, above: str = ""
) -> Iterator[Setting]:
    """Yield every setting of a section, and of the sections in it. A setting of both a service
    level and its zoo comes once."""
    for name, field in section.model_fields.items():
        found = Setting(above + name, section, field)
        yield found
        if found.below is not None and found.below is not Promise:
            named = f"{NAMES[name]}." if name in NAMES else ""
            yield from every_setting(found.below, f"{found.key}.{named}")


def values() -> list[Setting]:
    """List the settings that are values, not sections of others: as many as can be set."""
    return [each for each in every_setting() if each.below is None]


def printed(page: str) -> str:
    """Return the page with up-to-date tables. Raises ValueError if its rows are not those of the
    settings, each once."""
    rows = {each.key: each.row for each in every_setting()}
    found = [key for table in TABLE.findall(page) for key in ROW.findall(table)]
    wrong = sorted((set(rows) ^ set(found)) | {key for key in found if found.count(key) > 1})
    if wrong:
        raise ValueError(f"a row for each setting, once: {', '.join(wrong)}")
    return TABLE.sub(lambda table: ROW.sub(lambda row: rows[row[1]], table[0]), page)


def _section_in(annotation: Any) -> type[BaseModel] | None:
    if get_origin(annotation) in (dict, UnionType):
        found = (_section_in(each) for each in get_args(annotation))
        return next((each for each in found if each is not None), None)
    is_one = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation if is_one else None


def _name(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _kind(schema: dict[str, Any]) -> str:
    """Describe the allowed values, by the JSON schema. Raises ValueError if it takes words."""
    if "const" in schema or "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "boolean":
            return "`true` or `false`"
        case "number" | "integer":
            return _bounds(schema)
        case "object":
            return "a section"
    raise ValueError(f"what is allowed needs words: {schema}")


def _bounds(schema: dict[str, Any]) -> str:
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
