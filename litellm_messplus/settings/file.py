"""The proxy's configuration file, for commands that run beside the proxy."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from litellm_messplus.errors import ConfigurationError

VARIABLE = "os.environ/"
"""What LiteLLM puts a variable of the environment in the place of."""


def read_config(path: Path) -> Mapping[str, Any]:
    """The whole file. Variables are filled in as LiteLLM does; one that is not set stays as it is
    written, for many (a provider's key) matter to the proxy alone.

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
