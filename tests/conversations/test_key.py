"""The key of the digests: drawn once for each database, and by chance."""

from pathlib import Path

from litellm_messplus.conversations.line import Asked
from litellm_messplus.conversations.lines import Lines
from litellm_messplus.prediction.encoder import Conversation
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.lines import read_conversation_key

PROMPT = Asked("1", "zoo", "alice", Conversation.of_text("Hello"))


async def key_of(path: Path) -> bytes:
    database = create_engine(f"sqlite+aiosqlite:///{path}")
    try:
        await migrate(database)
        return await read_conversation_key(database)
    finally:
        await database.dispose()


async def test_every_start_on_a_database_reads_the_same_key(tmp_path: Path) -> None:
    first, again = [await key_of(tmp_path / "one.db") for _ in range(2)]
    assert first == again
    assert len(first) == 32
    assert Lines(first).find(PROMPT, 0.0).prompt == Lines(again).find(PROMPT, 0.0).prompt


async def test_every_database_has_a_key_of_its_own(tmp_path: Path) -> None:
    one, other = await key_of(tmp_path / "one.db"), await key_of(tmp_path / "other.db")
    assert one != other
    assert Lines(one).find(PROMPT, 0.0).prompt != Lines(other).find(PROMPT, 0.0).prompt
