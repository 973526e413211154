"""The page's static files, from the wheel: read once, sent with the headers that keep them safe."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources

KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""Of a file by how its name ends; others are not served."""
INDEX = "index.html"
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "x-frame-options": "SAMEORIGIN",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    # Asked for each time, and answered with 304 while nothing has changed.
    "cache-control": "no-cache",
}
"""Of every answer under the page: no script or style but its own, and no data to anywhere else."""


@dataclass(frozen=True, slots=True)
class File:
    """One of them."""

    content: bytes
    kind: str
    etag: str


@cache
def files() -> dict[str, File]:
    """All of them by name."""
    folder = resources.files("litellm_messplus.page") / "static"
    return {
        each.name: _read(each.name, each.read_bytes())
        for each in folder.iterdir()
        if each.name.rpartition(".")[2] in KINDS
    }


def _read(name: str, content: bytes) -> File:
    kind = KINDS[name.rpartition(".")[2]]
    return File(content, kind, f'"{sha256(content).hexdigest()[:16]}"')
