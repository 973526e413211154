"""Who asks, by the names that people know: the key's alias, a user, an end user, tags.

LiteLLM gathers them in its own metadata of a request. They are short names and no words of a
prompt; a client may send the end user and tags, as long and as many as it likes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from litellm_messplus.store.log import storable

LONGEST = 255
"""Characters of a name that are kept."""
LONGEST_TAG = 64
"""Characters of a tag that are kept."""
MOST_TAGS = 16
"""Tags that are kept, the first."""


class Identities(TypedDict, total=False):
    """The columns of `requests` that say who asked; what nobody told is None."""

    key_alias: str | None
    user_id: str | None
    end_user: str | None
    tags: tuple[str, ...] | None


def identities(metadata: Mapping[str, Any], *, are_kept: bool) -> Identities:
    """Read who asks; nothing of it where the operator does not want it kept."""
    if not are_kept:
        return {}
    return {
        "key_alias": _name(metadata.get("user_api_key_alias")),
        "user_id": _name(metadata.get("user_api_key_user_id")),
        "end_user": _name(metadata.get("user_api_key_end_user_id")),
        "tags": _tags(metadata.get("tags")),
    }


def _name(found: object) -> str | None:
    return storable(found[:LONGEST]) if isinstance(found, str) and found else None


def _tags(found: object) -> tuple[str, ...] | None:
    """Take the tags in their order, each once."""
    if not isinstance(found, Sequence) or isinstance(found, str):
        return None
    plain = (storable(tag[:LONGEST_TAG]) for tag in found[:MOST_TAGS] if isinstance(tag, str))
    return tuple(dict.fromkeys(filter(None, plain))) or None
