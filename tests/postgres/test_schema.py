"""A database of this version is one that a start goes on with, on Postgres as on SQLite."""

from litellm_messplus.store.reading import reading
from litellm_messplus.upkeep.integrity import Outcome, check_schema
from tests.support.earlier_checkouts import made


async def test_a_database_of_this_version_is_as_the_code_has_it(database_url: str) -> None:
    await made(database_url)

    async with reading(database_url) as engine:
        assert (await check_schema(engine)).outcome is Outcome.SOUND
