"""Who asks, by the names that people know, and in which conversation.

LiteLLM gathers names in its own metadata of a request: the key's alias, a user, an end user, tags.
They are short names and no words of a prompt; a client may send the end user and tags, as long and
as many as it likes. A conversation is told from others by its session, else by how it begins.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from litellm_messplus.proxy.surfaces.conversation import read_conversation
from litellm_messplus.proxy.surfaces.identity import session_named
from litellm_messplus.proxy.surfaces.request import IncomingRequest
from litellm_messplus.records import Asker, Names
from litellm_messplus.store.rows import storable

LONGEST = 255
"""Characters of a name that are kept."""
LONGEST_TAG = 64
"""Characters of a tag that are kept."""
MOST_TAGS = 16
"""Tags that are kept, the first."""


def asker_of(request: IncomingRequest) -> Asker:
    """Read who asks, and how."""
    return Asker(
        request.litellm_call_id,
        request.key_hash,
        request.team_id,
        request.call_type,
        request.is_stream,
    )


def names_of(metadata: Mapping[str, Any], *, are_kept: bool) -> Names | None:
    """Read the names of who asks; None where the operator does not want them kept."""
    if not are_kept:
        return None
    return Names(
        key_alias=_name(metadata.get("user_api_key_alias")),
        user_id=_name(metadata.get("user_api_key_user_id")),
        end_user=_name(metadata.get("user_api_key_end_user_id")),
        tags=_tags(metadata.get("tags")),
    )


def _name(found: object) -> str | None:
    return storable(found[:LONGEST]) if isinstance(found, str) and found else None


def _tags(found: object) -> tuple[str, ...] | None:
    """Take the tags in their order, each once."""
    if not isinstance(found, Sequence) or isinstance(found, str):
        return None
    plain = (storable(tag[:LONGEST_TAG]) for tag in found[:MOST_TAGS] if isinstance(tag, str))
    return tuple(dict.fromkeys(filter(None, plain))) or None


LONGEST_OPENING = 20
"""Messages that are looked through for the first one of a user."""


def conversation_of(request: IncomingRequest) -> str:
    """Return a digest that all requests of a conversation share: of the session that the client
    named, else of the system's words and the user's first, each within its key."""
    session = session_named(request.client_metadata, request.kwargs)
    parts = ["session", session] if session is not None else ["opening", *_opening(request)]
    digest = blake2b(digest_size=16)
    for part in (request.key_hash or "", *parts):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(encoded) + encoded)
    return digest.hexdigest()


def _opening(request: IncomingRequest) -> list[str]:
    """Read the words up to the first of a user; later turns change nothing in them."""
    given, surface = request.kwargs, request.surface
    prompt = given.get(surface.prompt) if request.messages is None else request.messages
    system = given.get(surface.system) if surface.system else None
    if isinstance(prompt, list | tuple):
        roles = [each.get("role") if isinstance(each, dict) else None for each in prompt]
        first = roles.index("user") + 1 if "user" in roles else LONGEST_OPENING
        prompt = prompt[: min(first, LONGEST_OPENING)]
    return [turn.text for turn in read_conversation(prompt, system).turns]
