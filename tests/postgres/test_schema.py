"""Which databases a start goes on with, on Postgres as on SQLite."""

from pathlib import Path

import pytest

from litellm_messplus.store.reading import OtherVersionError, reading
from litellm_messplus.upkeep.finding import Outcome
from litellm_messplus.upkeep.integrity import check_schema
from tests.support.earlier_checkouts import made, migrations_of, refusal, replace


async def test_a_database_of_this_version_is_as_the_code_has_it(database_url: str) -> None:
    await made(database_url)

    async with reading(database_url) as engine:
        assert (await check_schema(engine)).outcome is Outcome.SOUND


async def test_a_view_that_another_text_of_a_migration_made_is_refused(
    database_url: str, tmp_path: Path
) -> None:
    with migrations_of(tmp_path) as migrations:
        replace(
            migrations / "versions" / "0001_schema.py", "SUM(compared) > 0", "SUM(compared) > 1"
        )
        await made(database_url)

    assert "its migration 0001 is another one than here" in await refusal(database_url)
    with pytest.raises(OtherVersionError, match="migration 0001 is another one"):
        async with reading(database_url):
            pass
