"""The proxy's master key, for a start without one: made once, kept in a file of the owner's."""

import os
import secrets
from pathlib import Path

FILE = Path("var/master_key")
VARIABLE = "LITELLM_MASTER_KEY"


def find_or_make() -> str:
    """The key of the environment, else of the file, which is made on the first start."""
    known = _known()
    if known is not None:
        return known
    key = f"sk-{secrets.token_urlsafe(32)}"
    FILE.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(key + "\n")
    return key


def find() -> str:
    """The key of the environment, else of the file.

    Raises SystemExit with what to do where there is neither.
    """
    known = _known()
    if known is None:
        raise SystemExit(
            f"messplus: no key. Start the proxy with `messplus up` (it writes {FILE}), "
            f"set {VARIABLE}, or give --key."
        )
    return known


def _known() -> str | None:
    given = os.environ.get(VARIABLE)
    if given:
        return given
    return FILE.read_text().strip() if FILE.exists() else None
