"""What was tried together, from the runs themselves: versions of Python, LiteLLM and the database.

    python tools/matrix.py note --ran wheel [--database URL]   # by the Python that ran it
    python tools/matrix.py join FILE...

`note` writes a file into `var/ran`, where a run has passed: `.ci/run` and `make wheel` call it.
`join` puts such files, of this machine or the workflow's artifacts, into `tools/matrix.json`, of
which `make docs` makes the table of docs/support.md; of the same runs the newest is kept.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "var" / "ran"
MATRIX = ROOT / "tools" / "matrix.json"
KINDS = ("all tests", "tests", "real proxies", "wheel")
"""What can have been run: all tests, those without most real proxies, those of the serving room and
all real proxies, and the wheel, which installed alone routes a request and counts a verdict."""
SQLITE = "SQLite"


@dataclass(frozen=True, order=True)
class Ran:
    """A run that passed. ``python`` and ``database`` are without their patch versions."""

    python: str
    litellm: str
    database: str
    ran: str
    on: str

    @property
    def what(self) -> tuple[str, str, str, str]:
        """The versions and what was run, whenever it was."""
        return self.python, self.litellm, self.database, self.ran


def read(path: Path) -> list[Ran]:
    """Read the runs in a file: one, or a list. Raises TypeError for other fields."""
    found = json.loads(path.read_text("utf-8"))
    return [Ran(**each) for each in (found if isinstance(found, list) else [found])]


def joined(runs: Iterable[Ran]) -> list[Ran]:
    """Keep the newest of each, in order."""
    newest: dict[tuple[str, str, str, str], Ran] = {}
    for each in sorted(runs, key=lambda ran: ran.on):
        newest[each.what] = each
    return sorted(newest.values())


def write(runs: Sequence[Ran], path: Path) -> None:
    """Write runs as a list, one a line, so that a change can be read."""
    lines = ",\n".join(json.dumps(asdict(each)) for each in runs)
    path.write_text(f"[\n{lines}\n]\n", "utf-8")


async def database_of(url: str | None) -> str:
    """Return the name of the database behind a URL of `messplus.database`, with its version."""
    if url is None or url.startswith("sqlite"):
        return SQLITE
    import asyncpg  # comes with the extra `postgres`

    server = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        return f"Postgres {server.get_server_version().major}"
    finally:
        await server.close()


def note(ran: str, url: str | None) -> Path:
    """Write down what this environment ran, today."""
    versions = sys.version_info
    database = asyncio.run(database_of(url))
    litellm = metadata.version("litellm")
    today = datetime.now(UTC).date().isoformat()
    found = Ran(f"{versions.major}.{versions.minor}", litellm, database, ran, today)
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{'-'.join(found.what).replace(' ', '_')}.json"
    path.write_text(json.dumps(asdict(found)) + "\n", "utf-8")
    return path


def main() -> None:
    """Note or join."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    noting = commands.add_parser("note")
    noting.add_argument("--ran", choices=KINDS, required=True)
    noting.add_argument("--database", help="a value of `messplus.database`; else SQLite")
    commands.add_parser("join").add_argument("files", type=Path, nargs="+")
    given = parser.parse_args()
    if given.command == "note":
        print(f"noted in {note(given.ran, given.database).relative_to(ROOT)}")
    else:
        before = read(MATRIX) if MATRIX.is_file() else []
        write(joined([*before, *(ran for path in given.files for ran in read(path))]), MATRIX)


if __name__ == "__main__":
    main()
