"""Requests that this process decided lately: for retries, headers, outcomes and prompt feedback."""

from collections import OrderedDict
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from litellm_messplus.identity import new_id
from litellm_messplus.labels.answered_call import Asked
from litellm_messplus.proxy.authors import Author
from litellm_messplus.records import RequestRecord

METADATA_KEY = "messplus"
REMEMBERED = 4096


@dataclass(slots=True)
class OpenRequest:
    """A decided request. ``tried`` holds the ids of the deployments that failed it; ``asked`` is
    there where somebody judges its answers, ``author`` where LiteLLM's cache answered and it is
    known who wrote that. ``secret`` is told to no client."""

    record: RequestRecord
    ranking: tuple[str, ...]
    asked: Asked | None = None
    tried: set[str] = field(default_factory=set)
    author: Author | None = None
    response_id: str | None = None
    secret: str = field(default_factory=new_id)


class OpenRequests:
    """Bounded: what is forgotten here is in the database."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._by_id: OrderedDict[str, OpenRequest] = OrderedDict()

    def add(self, opened: OpenRequest, metadata: MutableMapping[str, Any]) -> None:
        """Remember it, and mark LiteLLM's metadata so that every later hook finds it again."""
        metadata[METADATA_KEY] = {
            "request_id": opened.record.request_id,
            "secret": opened.secret,
        }
        self._by_id[opened.record.request_id] = opened
        while len(self._by_id) > self._remembered:
            self._by_id.popitem(last=False)

    def get(self, metadata: object, litellm_call_id: str | None) -> OpenRequest | None:
        """The request that the metadata of a hook belongs to.

        A client can write into the metadata, and choose the id of its call: with those of a
        request that it made before it would be served by that decision, and not be logged. So the
        mark holds what it cannot know.
        """
        mark = metadata.get(METADATA_KEY) if isinstance(metadata, dict) else None
        if not isinstance(mark, dict):
            return None
        request_id = mark.get("request_id")
        found = self._by_id.get(request_id) if isinstance(request_id, str) else None
        if found is None or found.record.litellm_call_id != litellm_call_id:
            return None
        return found if mark.get("secret") == found.secret else None

    def find(self, given: str) -> Iterator[OpenRequest]:
        """Those whose own id, LiteLLM call id or response id is ``given``, newest first."""
        direct = self._by_id.get(given)
        if direct is not None:
            yield direct
        for opened in reversed(self._by_id.values()):
            if given in (opened.record.litellm_call_id, opened.response_id):
                yield opened
