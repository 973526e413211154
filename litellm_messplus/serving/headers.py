"""The headers of a routed answer."""

from functools import lru_cache
from string import printable
from urllib.parse import quote

from litellm_messplus.records import RequestRecord

# Names chosen by an operator, encoded for a response header.

PLAIN = "".join(sorted(set(printable) - set("\t\n\r\x0b\x0c")))


@lru_cache(maxsize=1024)
def header_value(name: str) -> str:
    """Return the name itself if it is plain ASCII, else percent-encoded: a header that cannot be
    written would lose the whole answer."""
    return quote(name, safe=PLAIN, errors="replace")


# The headers of a routed answer: two for most, since each costs time in every request.


def response_headers(
    record: RequestRecord, model: str | None, first: str | None = None
) -> dict[str, str]:
    """Build the headers of a request whose answer ``model`` wrote; None if there is no answer, or
    its author is unknown. ``first`` is the model whose answer it replaced."""
    headers = {"x-messplus-request-id": record.request_id}
    if model is not None:
        headers["x-messplus-model"] = header_value(model)
    if first is not None:
        headers["x-messplus-first-model"] = header_value(first)
    return headers
