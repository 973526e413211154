"""Who asks, as LiteLLM's metadata names them: what is kept, and how much of it."""

from pathlib import Path
from typing import Any

from litellm_messplus.records import Names
from litellm_messplus.serving.surfaces.identity import LONGEST, LONGEST_TAG, MOST_TAGS, names_of
from litellm_messplus.store.tables import requests
from tests.support.in_process import written
from tests.support.journey import journey

ADA = {
    "user_api_key_hash": "key",
    "user_api_key_alias": "chat-app",
    "user_api_key_user_id": "ada",
    "user_api_key_end_user_id": "customer-7",
    "tags": ["search", "beta", "search"],
}


async def logged(folder: Path, **settings: Any) -> Any:
    """The row of one request of Ada's."""
    async with journey(folder, **settings) as proxy:
        await proxy.ask(metadata=dict(ADA))
    [row] = await written(folder, requests)
    return row


def names(metadata: dict[str, Any]) -> Names:
    found = names_of(metadata, are_kept=True)
    assert found is not None
    return found


async def test_the_log_says_who_asked(tmp_path: Path) -> None:
    row = await logged(tmp_path)

    assert (row.key_alias, row.user_id, row.end_user) == ("chat-app", "ada", "customer-7")
    assert row.tags == ["search", "beta"]


async def test_nobody_is_named_where_the_operator_wants_none(tmp_path: Path) -> None:
    row = await logged(tmp_path, store_identities=False)

    assert (row.key_alias, row.user_id, row.end_user, row.tags) == (None, None, None, None)
    assert row.key_hash == "key"
    names = {ADA["user_api_key_alias"], ADA["user_api_key_end_user_id"], "ada", "beta"}
    assert not names & {str(value) for value in vars(row).values()}


def test_long_names_and_many_tags_are_cut() -> None:
    given = {
        "user_api_key_end_user_id": "x" * 10_000,
        "tags": ["y" * 10_000, *(f"tag-{number}" for number in range(1000))],
    }

    found = names(given)

    assert len(found.end_user or "") == LONGEST
    tags = found.tags or ()
    assert len(tags) == MOST_TAGS
    assert max(map(len, tags)) == LONGEST_TAG


def test_what_a_client_sends_in_place_of_names_names_nobody() -> None:
    given = {
        "user_api_key_alias": "",
        "user_api_key_user_id": 7,
        "user_api_key_end_user_id": {"a": 1},
        "tags": "a tag",
    }

    assert names(given) == names({"tags": [None, 3, ""]}) == Names()


def test_names_are_such_as_every_database_takes() -> None:
    given = {"user_api_key_end_user_id": "a\0b", "tags": ["c\ud800d", "e\0f"]}

    found = names(given)

    assert found.end_user == "a�b"
    assert found.tags == ("c?d", "e�f")
