"""Hooks of MkDocs (`mkdocs.yml`): the pages of `docs/` as a site, and what they link to.

Pages link as they do in a checkout, so a link may lead out of `docs/`: to the README and its like,
which become pages too, or to a file such as `deploy/compose.yaml`, which the site carries as it is.
`make site` builds it, in an environment of its own, where nothing of this project is installed.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
DOCS = "docs"
PAGES = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/tiny_zoo/README.md": "tiny_zoo.md",
    "examples/agent/README.md": "agent.md",
    "examples/efforts/README.md": "efforts.md",
}
"""The pages outside of `docs/`, by their paths in a checkout, and their paths in the site."""
FILES = "files"
"""The folder of the site for linked files that are no pages."""
LINK = re.compile(r"(\]\()([^)\s#]+)([^)]*\))")
FENCE = re.compile(r"^ *```")
URL = re.compile(r"[a-z]+:")


def on_files(files: "Files", config: Any) -> "Files":
    """Add the pages outside of `docs/`, and the files that pages link to."""
    for path, place in PAGES.items():
        files.append(_file(config, path, place))
    pages = [page.src_uri for page in files.documentation_pages()]
    linked = {path for page in pages for path in _linked(_source(page))}
    for path in sorted(linked):
        if files.get_file_from_path(place_of(path)) is None:
            files.append(_file(config, path, place_of(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_others: Any) -> str:
    """Let the links of a page lead to where the site has their targets."""
    return rewritten(markdown, _source(page.file.src_uri))


def rewritten(markdown: str, source: str) -> str:
    """Return a page of a checkout with its links as the site has them, code left as it is."""
    here = posixpath.dirname(place_of(source))

    def lead(found: re.Match[str]) -> str:
        if URL.match(found[2]):
            return found[0]
        return found[1] + posixpath.relpath(place_of(_target(source, found[2])), here) + found[3]

    lines = (LINK.sub(lead, line) if is_prose else line for line, is_prose in _lines(markdown))
    return "\n".join(lines)


def place_of(path: str) -> str:
    """Return the path in the site of a file of the checkout."""
    if path in PAGES:
        return PAGES[path]
    inside = path.removeprefix(f"{DOCS}/")
    return inside if inside != path else posixpath.join(FILES, path)


def _source(place: str) -> str:
    """Return the path in the checkout of a page of the site."""
    outside = {there: path for path, there in PAGES.items()}
    return outside.get(place) or posixpath.join(DOCS, place)


def _target(source: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def _linked(source: str) -> Iterator[str]:
    """Yield the paths in the checkout of the files that a page links to."""
    for line, is_prose in _lines((ROOT / source).read_text("utf-8")):
        for _, link, _ in LINK.findall(line) if is_prose else ():
            path = _target(source, link)
            if not URL.match(link) and (ROOT / path).is_file():
                yield path


def _lines(markdown: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is prose and no code."""
    is_code = False
    for line in markdown.split("\n"):
        is_fence = FENCE.match(line) is not None
        yield line, not (is_code or is_fence)
        is_code ^= is_fence


def _file(config: Any, path: str, place: str) -> "File":
    from mkdocs.structure.files import File

    return File.generated(config, place, abs_src_path=str(ROOT / path))
