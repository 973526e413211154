"""Code by its name: the operator's own, named in a setting as `package.module:attribute`, and the
version of ours that is installed."""

import importlib
import re
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from litellm_messplus.runtime.errors import ConfigurationError

DOTTED_PATH = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


def load_attribute(path: str) -> Any:
    """Load what a module has under a name, or under a name within it (`module:Class.member`).

    Raises whatever importing it raises: ImportError, AttributeError, or any error of that code.
    """
    module, _, attribute = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def load_part(key: str, path: str, kind: str, members: Sequence[str]) -> Any:
    """Load an object that has these members, or call what makes one without arguments.

    Raises ConfigurationError, with the ``key`` of the setting, for a path that does not lead to one
    of this ``kind``.
    """
    allowed = f"package.module:attribute of {kind}"

    def has_members(found: object) -> bool:
        return not isinstance(found, type) and all(hasattr(found, name) for name in members)

    try:
        found = load_attribute(path)
        part = found if has_members(found) else found()
    except Exception as error:  # the code of others may raise anything
        raise ConfigurationError(key, path, f"{allowed} ({error!r})") from error
    if not has_members(part):
        raise ConfigurationError(key, path, f"{allowed} with {', '.join(members)}")
    return part


# Which version is installed.

PACKAGE = "litellm-messplus"


def version() -> str:
    """Return the version of the installed package."""
    return metadata.version(PACKAGE)
