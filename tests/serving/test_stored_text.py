"""What users say stays out of the database unless `store_text` asks for it, whoever writes it."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import Record
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.store.tables import metadata
from tests.support.builders import exploration_call, label, request, served_call
from tests.support.folding import build_journal
from tests.support.journey import journey

WORDS = "my secret garden"
WITH_TEXT: list[Record] = [
    request("r1", prompt=WORDS, exploration_calls=1),
    served_call("r1", answer=WORDS),
    exploration_call("r1", answer=WORDS),
    label("r1", kind=LabelKind.JUDGE, source="judge", comment=WORDS),
]
"""Every record that may quote a user who has not sent the words to be kept."""


async def kept(database: AsyncEngine, store_text: bool, records: Sequence[Record]) -> str:
    """All rows of the database as one text, after a journal wrote the records."""
    journal = build_journal(database, store_text=store_text)
    journal.start()
    for record in records[:-1]:
        journal.write(record)
    await journal.write_durably(records[-1])
    await journal.close()
    async with database.connect() as connection:
        return "\n".join(
            [
                str(row)
                for table in metadata.sorted_tables
                for row in await connection.execute(select(table))
            ]
        )


async def test_no_words_reach_the_database_unless_asked_for(database: AsyncEngine) -> None:
    found = await kept(database, False, WITH_TEXT)

    assert WORDS not in found
    assert "r1.1" in found


async def test_where_it_is_asked_for_all_words_are_kept(database: AsyncEngine) -> None:
    assert (await kept(database, True, WITH_TEXT)).count(WORDS) == len(WITH_TEXT)


@pytest.mark.parametrize("kind", [LabelKind.FEEDBACK, LabelKind.CHECK])
async def test_kept_words_and_plain_reasons_stay(database: AsyncEngine, kind: LabelKind) -> None:
    """A user posts the comment of feedback; checks quote nobody."""
    said = label("r1", kind=kind, source=kind.value, comment=WORDS)
    records: list[Record] = [request("r1"), served_call("r1"), said]

    assert WORDS in await kept(database, False, records)


async def test_no_prompt_is_remembered(tmp_path: Path) -> None:
    """Thousands of them would fill the memory."""
    async with journey(tmp_path, store_text=True) as proxy:
        asked = await proxy.ask(WORDS)
        opened = proxy.plugin.parts.served.open_requests.of_hook(asked.arguments, asked.arguments)
        assert opened is not None
        assert opened.record.prompt is None
