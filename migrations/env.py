"""Runs the migrations, from the proxy's start (on its connection) or from the `alembic` command."""

import os

from alembic import context
from sqlalchemy import Connection, pool
from sqlalchemy.ext.asyncio import create_async_engine

from litellm_messplus.store.tables import metadata


def migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata)
    with context.begin_transaction():
        context.run_migrations()


async def migrate_from_command_line() -> None:
    url = os.environ.get("MESSPLUS_DATABASE", "sqlite+aiosqlite:///messplus.db")
    engine = create_async_engine(url, poolclass=pool.NullPool)
    async with engine.begin() as connection:
        await connection.run_sync(migrate)
    await engine.dispose()


given = context.config.attributes.get("connection")
if given is not None:
    migrate(given)
else:
    import asyncio

    asyncio.run(migrate_from_command_line())
