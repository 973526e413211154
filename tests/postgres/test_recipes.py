"""The recipes of the docs, on Postgres."""

from sqlalchemy.ext.asyncio import AsyncEngine

from tests.support.markdown import ROOT, Document


async def test_an_archive_is_a_copy(database: AsyncEngine) -> None:
    (copy,) = [
        block.code
        for block in Document(ROOT / "docs" / "recipes.md").blocks
        if block.language == "sql"
    ]
    async with database.connect() as connection:
        raw = (await connection.get_raw_connection()).driver_connection
        assert raw is not None
        query, target = copy.rstrip().removeprefix("COPY (").split(") TO STDOUT ")
        assert target == "(FORMAT csv, HEADER);"
        written = bytearray()

        async def keep(data: bytes) -> None:
            written.extend(data)

        await raw.copy_from_query(query, output=keep, format="csv", header=True)
    assert written.decode().startswith("request_id,")
