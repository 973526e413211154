"""Names that an operator chose, as a response header can carry them."""

from string import printable
from urllib.parse import quote

PLAIN = "".join(sorted(set(printable) - set("\t\n\r\x0b\x0c")))


def header_value(name: str) -> str:
    """The name itself where it is plain ASCII, else percent-encoded: a header that cannot be
    written takes the whole answer with it."""
    return quote(name, safe=PLAIN, errors="replace")
