"""Whether the file of a SQLite database is still the one that was opened.

SQLite goes on writing to a file that was deleted or replaced, into nothing that anybody will read:
an acknowledged verdict would be lost with the process.
"""

import os
from pathlib import Path

from sqlalchemy.engine.interfaces import DBAPIConnection

from litellm_messplus.errors import MessplusError

KEY = "database_file"
"""Where a connection keeps it."""


class DatabaseFileGoneError(MessplusError, OSError):
    """The database's file is not there any more, or another one is in its place."""


class DatabaseFile:
    """One an engine: all its connections must write to the file that the first one found."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._identity: tuple[int, int] | None = None

    def opened(self, connection: DBAPIConnection) -> None:
        """A connection to it was opened: the first one says which file it is.

        Raises DatabaseFileGoneError where that is there no more. SQLite makes an empty one then.
        """
        cursor = connection.cursor()
        cursor.execute("PRAGMA database_list")
        found = [path for _, name, path in cursor.fetchall() if name == "main" and path]
        cursor.close()
        if self._path is None and found:
            self._path = Path(found[0])
            self._identity = self._now()
        self.check()

    def check(self) -> None:
        """Raise DatabaseFileGoneError where what is at the path now is not what was opened."""
        if self._path is None:
            return
        now = self._now()
        if now is None or now != self._identity:
            what = "was deleted" if now is None else "was replaced by another one"
            raise DatabaseFileGoneError(
                f"the database {self._path} {what} while it was open: put it back, or restart the "
                "proxy, which goes on with what is there"
            )

    def _now(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path or "")
        except OSError:
            return None
        return found.st_dev, found.st_ino
