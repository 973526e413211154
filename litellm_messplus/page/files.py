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
    "cache-control": "no-cache",
}
"""Of every answer under the page: no script or style but its own, and no data to anywhere else."""


KEPT_LONG = {**HEADERS, "cache-control": "private, max-age=31536000, immutable"}
"""Of a file under the address of its version, which never changes: it is asked for once."""
NOT_KEPT = {**HEADERS, "cache-control": "no-store"}
"""Of what may hold users' words, or lets somebody in: no cache keeps it."""


@dataclass(frozen=True, slots=True)
class File:
    """One of them."""

    content: bytes
    kind: str


@dataclass(frozen=True, slots=True)
class Files:
    """All of them by name. ``version`` is of their contents, and part of the address of each but
    the index, which names it."""

    version: str
    by_name: dict[str, File]


@cache
def files() -> Files:
    """Read them."""
    folder = resources.files("litellm_messplus.page") / "static"
    contents = {
        each.name: each.read_bytes()
        for each in folder.iterdir()
        if each.name.rpartition(".")[2] in KINDS
    }
    everything = b"".join(contents[name] for name in sorted(contents))
    version = sha256(everything).hexdigest()[:16]
    contents[INDEX] = contents[INDEX].replace(b'"static/', f'"static/{version}/'.encode())
    return Files(
        version,
        {name: File(content, KINDS[name.rpartition(".")[2]]) for name, content in contents.items()},
    )
