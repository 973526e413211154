"""What the URL of a database tells, without SQLAlchemy, which a worker beside its brain never
loads."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import URL


def file_of(database: str) -> str | None:
    """Return the path in the URL of a SQLite database; None for another one."""
    scheme, _, rest = database.partition(":///")
    return rest.partition("?")[0] if scheme.startswith("sqlite") else None


def without_passwords(url: "str | URL") -> str:
    """Return a URL, valid or not, for a message: without its passwords."""
    text = url if isinstance(url, str) else url.render_as_string(hide_password=False)
    return re.sub(r"(//[^:/?@]*:).*(?=@)|(password=)[^&]*", r"\1\2***", text)
