"""How a conversation is told from others at every turn of it: by its session, else its opening."""

from hashlib import blake2b

from litellm_messplus.proxy.surfaces.conversation import read_conversation
from litellm_messplus.proxy.surfaces.identity import session_named
from litellm_messplus.proxy.surfaces.request import IncomingRequest

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
