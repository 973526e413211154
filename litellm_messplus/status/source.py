"""Reading the status from a database that somebody else keeps."""

from pathlib import Path

from litellm_messplus.errors import MessplusError
from litellm_messplus.status.build import WINDOW, read_status
from litellm_messplus.status.report import Status
from litellm_messplus.store.reading import reading

DEFAULT_FILES = (Path("var/messplus.db"), Path("messplus.db"))
"""Where `messplus up` and a proxy without `messplus.database` keep theirs; the first is taken."""


class NoStatusError(MessplusError):
    """A proxy gives no status; the message says why, and what to do."""


def default_database() -> str:
    """The database of this folder, whether it is there or not."""
    return str(next((path for path in DEFAULT_FILES if path.is_file()), DEFAULT_FILES[-1]))


async def status_of(database: str, window: int = WINDOW) -> Status:
    """The status of the database at an SQLAlchemy URL, or of the SQLite one at a path.

    Raises UnreadableDatabaseError where there is none, or none of this version.
    """
    async with reading(database) as engine:
        return await read_status(engine, window)
