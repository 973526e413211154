"""From the proxy's parsed configuration to checked settings."""

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from litellm_messplus.errors import ConfigurationError
from litellm_messplus.settings.schema import MessplusSettings

# The proxy's configuration file, for commands that run beside the proxy.

VARIABLE = "os.environ/"
"""What LiteLLM puts a variable of the environment in the place of."""


def read_config(path: Path) -> Mapping[str, Any]:
    """Read the whole file. Variables are filled in as LiteLLM does; one that is not set stays as it
    is written, for many (a provider's key) matter to the proxy alone.

    Raises ConfigurationError where it cannot be read.
    """
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError("--config", str(path), f"a proxy_config.yaml ({reason})") from None
    if not isinstance(found, dict):
        raise ConfigurationError("--config", str(path), "a proxy_config.yaml with sections in it")
    filled: dict[str, Any] = _filled(found)
    return filled


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _filled(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_filled(below) for below in value]
    if isinstance(value, str) and value.startswith(VARIABLE):
        return os.environ.get(value.removeprefix(VARIABLE), value)
    return value


SECTION = "messplus"
NEIGHBOURS = ("litellm_settings", "general_settings", "router_settings")
"""LiteLLM's own sections, below which ours is put by mistake."""


def load_settings(config: Mapping[str, object]) -> MessplusSettings:
    """Check the `messplus:` section of a whole proxy configuration, and return its settings.

    Raises ConfigurationError naming the first key that cannot be honoured.
    """
    section = config.get(SECTION)
    if not isinstance(section, Mapping):
        raise _no_section(config)
    try:
        return MessplusSettings.model_validate(section)
    except ValidationError as error:
        raise _first_problem(error, section) from error


def _no_section(config: Mapping[str, object]) -> ConfigurationError:
    """Say where the section stands instead, if it does."""
    for neighbour in NEIGHBOURS:
        found = config.get(neighbour)
        if isinstance(found, Mapping) and SECTION in found:
            return ConfigurationError(
                f"{neighbour}.{SECTION}",
                f"a section below `{neighbour}:`",
                f"`{SECTION}:` at the top level of the file, beside `{neighbour}:`",
            )
    return ConfigurationError(SECTION, config.get(SECTION), "a section with `zoos:` in it")


def _first_problem(error: ValidationError, section: Mapping[str, object]) -> ConfigurationError:
    problem = error.errors()[0]
    key = ".".join([SECTION, *map(str, problem["loc"])])
    if problem["type"] == "extra_forbidden":
        return ConfigurationError(key, problem["input"], _instead(problem["loc"]))
    given = "nothing" if problem["type"] == "missing" else problem["input"]
    return ConfigurationError(key, given, _allowed(problem))


def _allowed(problem: ErrorDetails) -> str:
    message = problem["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    bounds = {
        "alpha": "a share greater than 0 and less than 1",
        "V": "a number greater than 0",
        "c": "a number of at least 0",
    }
    is_a_number = problem["type"] not in ("model_type", "dict_type")
    return bounds.get(str(problem["loc"][-1]), message) if is_a_number else "a section"


def _instead(location: Sequence[int | str]) -> str:
    """Say which keys there are in place of an unknown one, the nearest first."""
    known = _known_keys(location)
    nearest = get_close_matches(str(location[-1]), known, n=1)
    meant = f" (did you mean `{nearest[0]}`?)" if nearest else ""
    return f"no such key{meant}; known here: {', '.join(known)}"


def _known_keys(location: Sequence[int | str]) -> list[str]:
    """List the keys of the section in which the unknown one stands."""
    section: Any = MessplusSettings
    for key in location[:-1]:
        section = _below(section, key)
    return sorted(section.model_fields)


def _below(section: Any, key: int | str) -> Any:
    """Return the section that stands under a key, or the dictionary of sections by name."""
    if get_origin(section) is dict:
        return get_args(section)[1]
    kind = section.model_fields[key].annotation
    if get_origin(kind) is UnionType:  # a section that may be left out
        return get_args(kind)[0]
    return kind
