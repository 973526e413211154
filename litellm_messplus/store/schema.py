"""The migrations of this code, and which of them a database has."""

from pathlib import Path

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from litellm_messplus.runtime.errors import MessplusError


def migrations_config() -> Config:
    """Build Alembic's configuration for this code's migrations."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    return config


def migrations_folder() -> Path:
    """Find `migrations/`: inside the installed package, or next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def newest() -> str:
    """Return the number of the newest migration."""
    return _numbers()[0]


def _numbers() -> list[str]:
    scripts = ScriptDirectory(migrations_folder()).walk_revisions()
    return [script.revision for script in scripts]


class OtherSchemaError(MessplusError):
    """A database that another version made; the message states what to do."""


def revision(connection: Connection) -> str | None:
    """Return the number of the newest migration of a database; None if it has none.

    Raises OtherSchemaError if this code lacks that migration.
    """
    found = MigrationContext.configure(connection).get_current_revision()
    if found is not None and found not in _numbers():
        raise OtherSchemaError(
            f"its revision {found} is not known here: go on with the version that wrote it, or "
            "restore a backup that this version wrote (docs/upgrade.md)"
        )
    return found
