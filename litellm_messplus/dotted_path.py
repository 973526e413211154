"""Code of the operator's own, named in a setting as `package.module:attribute`."""

import importlib
import re
from typing import Any

DOTTED_PATH = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


def load_attribute(path: str) -> Any:
    """What a module has under a name, or under a name within it (`module:Class.member`).

    Raises whatever importing it raises: ImportError, AttributeError, or any error of that code.
    """
    module, _, attribute = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found
