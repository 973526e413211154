"""Databases as earlier checkouts made them: by migrations of the same numbers, in other words."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from litellm_messplus.runtime.errors import ConfigurationError
from litellm_messplus.store import schema
from litellm_messplus.store.database import create_engine, migrate


@contextmanager
def migrations_of(folder: Path) -> Iterator[Path]:
    """A copy of the migrations, to be changed; the code takes them for its own in the block."""
    copy = folder / "migrations"
    shutil.copytree(schema.migrations_folder(), copy, ignore=shutil.ignore_patterns("__pycache__"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "migrations_folder", lambda: copy)
        yield copy


def replace(path: Path, old: str, new: str) -> None:
    """Edit a migration in place."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


async def made(url: str) -> None:
    """Bring the database there to the version of the code."""
    engine = create_engine(url)
    try:
        await migrate(engine)
    finally:
        await engine.dispose()


async def refusal(url: str) -> str:
    """What the start says of a database that it refuses."""
    with pytest.raises(ConfigurationError) as caught:
        await made(url)
    assert "\n" not in caught.value.allowed
    return caught.value.allowed
