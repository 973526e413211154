"""The migrations make the tables of the code on Postgres too, comments included."""

from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.store.tables import metadata


async def test_the_migrations_make_exactly_the_tables_of_the_code(database: AsyncEngine) -> None:
    def difference(connection: Connection) -> list[Any]:
        return list(compare_metadata(MigrationContext.configure(connection), metadata))

    async with database.connect() as connection:
        assert await connection.run_sync(difference) == []
