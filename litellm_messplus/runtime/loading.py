"""Loading the operator's code by its name in a setting, `package.module:attribute`, and the
installed version of this package."""

import importlib
import re
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from typing import Any

from litellm_messplus.runtime.errors import ConfigurationError

DOTTED_PATH = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


def load_attribute(path: str) -> Any:
    """Load an attribute of a module, or one within it (`module:Class.member`).

    Raises what importing it raises: ImportError, AttributeError, or any error of that code.
    """
    module, _, attribute = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def load_part(key: str, path: str, kind: str, members: Sequence[str]) -> Any:
    """Load an object with these members, or call the loaded one, without arguments, to make it.

    Raises ConfigurationError, with the ``key`` of the setting, if the path gives no such object;
    ``kind`` names it in the message.
    """
    allowed = f"package.module:attribute of {kind}"

    def has_members(found: object) -> bool:
        return not isinstance(found, type) and all(hasattr(found, name) for name in members)

    try:
        found = load_attribute(path)
        part = found if has_members(found) else found()
    except Exception as error:  # the operator's code may raise anything
        raise ConfigurationError(key, path, f"{allowed} ({error!r})") from error
    if not has_members(part):
        raise ConfigurationError(key, path, f"{allowed} with {', '.join(members)}")
    return part


# The installed version.

PACKAGE = "litellm-messplus"


@cache
def version() -> str:
    """Return the version of the installed package."""
    return metadata.version(PACKAGE)
