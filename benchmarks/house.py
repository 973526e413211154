"""The size of the code, its division into modules, and the cycles among their imports.

    python -m benchmarks.house [FOLDER]   # modules by room: of a package, or of this project
    python -m benchmarks.house --json     # the weights that `budget.toml` bounds
    python -m benchmarks.house --check    # fails if one is above its bound

Re-export files, which hold only a docstring, imports and `__all__`, are counted separately, since
they are short on purpose.
"""

import argparse
import ast
import asyncio
import json
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from types import FrameType

from benchmarks import settings_tables

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "litellm_messplus"
BUDGET = Path(__file__).with_name("budget.toml")
PRINTED = {"benchmarks.md", "metrics.md", "settings.md", "status.md", "tables.md"}
"""Pages whose tables a command writes, or that are compared with the code row by row."""
SHORT = 60
"""Number of lines below which a module counts as short."""


@dataclass(frozen=True)
class Module:
    """One file of the package; `imports` are the modules of the same package that it loads."""

    name: str
    room: str
    lines: int
    functions: int
    is_re_export: bool
    imports: frozenset[str]


@dataclass(frozen=True)
class Figures:
    """The figures of a set of modules."""

    modules: int
    re_exports: int
    lines: int
    median_lines: float
    short: int
    functions: float
    largest: str
    largest_lines: int

    @property
    def short_share(self) -> float:
        """The share of short modules among those that are not re-exports."""
        return self.short / max(self.modules - self.re_exports, 1)


def read_package(folder: Path) -> list[Module]:
    """Read every module below a package's folder."""
    sources = {_module_name(folder, path): path for path in sorted(folder.rglob("*.py"))}
    return [_read(folder, name, path, sources.keys()) for name, path in sources.items()]


def figures(modules: Sequence[Module]) -> Figures:
    """Count a set of modules; medians exclude re-export files if there are others."""
    cut = [module for module in modules if not module.is_re_export] or list(modules)
    largest = max(cut, key=lambda module: module.lines)
    return Figures(
        modules=len(modules),
        re_exports=sum(module.is_re_export for module in modules),
        lines=sum(module.lines for module in modules),
        median_lines=median(module.lines for module in cut),
        short=sum(module.lines < SHORT and not module.is_re_export for module in modules),
        functions=median(module.functions for module in cut),
        largest=largest.name,
        largest_lines=largest.lines,
    )


def rooms(modules: Iterable[Module]) -> dict[str, list[Module]]:
    """Group the modules by the first folder below the package; top-level ones are `.`."""
    found: dict[str, list[Module]] = {}
    for module in modules:
        found.setdefault(module.room, []).append(module)
    return dict(sorted(found.items()))


def circles(modules: Sequence[Module]) -> list[tuple[str, ...]]:
    """Find the groups of modules that each import all others of the group, directly or not."""
    imports = {module.name: module.imports for module in modules}
    reached = {name: _reachable(name, imports) for name in imports}
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in imports
        if name in reached[name]
    }
    return sorted(groups)


def _reachable(start: str, imports: Mapping[str, frozenset[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(imports[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(imports[name])
    return found


def _module_name(folder: Path, path: Path) -> str:
    parts = [folder.name, *path.relative_to(folder).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _read(folder: Path, name: str, path: Path, known: Iterable[str]) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    below = path.relative_to(folder).parts
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return Module(
        name=name,
        room=below[0] if len(below) > 1 else ".",
        lines=len(text.splitlines()),
        functions=sum(
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(tree)
        ),
        is_re_export=all(_is_re_export(node) for node in tree.body),
        imports=frozenset(_imported(tree, package, frozenset(known))) - {name},
    )


def _is_re_export(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        return all(isinstance(name, ast.Name) and name.id == "__all__" for name in node.targets)
    return isinstance(node, ast.Import | ast.ImportFrom)


def _imported(tree: ast.Module, package: str, known: frozenset[str]) -> Iterator[str]:
    """Yield the modules loaded together with this one; imports inside functions come later."""
    for node in _loaded(tree.body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            for alias in node.names:
                below = f"{base}.{alias.name}"
                yield from (name for name in [below if below in known else base] if name in known)


def _loaded(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        is_later = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        is_for_types = isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test)
        if not is_later and not is_for_types:
            yield from ast.walk(statement)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def report(folder: Path) -> str:
    """Describe the figures of a package and of each of its rooms, and its import cycles."""
    modules = read_package(folder)
    found, round_trips = figures(modules), circles(modules)
    return "\n".join(
        [
            f"modules               {found.modules}, {found.re_exports} of them re-exports alone",
            f"lines                 {found.lines}",
            f"median module         {found.median_lines:g} lines",
            f"under {SHORT} lines        {found.short} modules, {found.short_share:.0%}",
            f"functions a module    {found.functions:g} (median)",
            f"largest module        {found.largest}, {found.largest_lines} lines",
            f"circles of imports    {len(round_trips)}",
            *(f"  {' <-> '.join(names)}" for names in round_trips),
            "",
            f"{'room':<14}{'modules':>8}{'lines':>8}{'median':>8}{'short':>7}  largest",
            *(_line(name, figures(those)) for name, those in rooms(modules).items()),
        ]
    )


def _line(room: str, found: Figures) -> str:
    return (
        f"{room:<14}{found.modules:>8}{found.lines:>8}{found.median_lines:>8g}{found.short:>7}"
        f"  {found.largest.rpartition('.')[2]}, {found.largest_lines}"
    )


def weights() -> dict[str, int]:
    """Count all that `budget.toml` bounds, in this checkout."""
    from typer.main import get_group

    from litellm_messplus.cli.main import app
    from litellm_messplus.store.tables import metadata

    found = figures(read_package(PACKAGE))
    return {
        "lines": found.lines,
        "nodes": nodes(PACKAGE),
        "nodes_per_100_lines": round(100 * nodes(PACKAGE) / found.lines),
        "modules": found.modules,
        "longest_module": found.largest_lines,
        "tests": _lines(ROOT / "tests", "**/*.py"),
        "docs": _written_by_hand(ROOT / "docs"),
        "settings": len(settings_tables.values()),
        "commands": sum(not each.hidden for each in get_group(app).commands.values()),
        "tables": len(metadata.tables),
        "views": asyncio.run(_views()),
        "rooms_crossed": len(asyncio.run(crossings())),
    }


def nodes(folder: Path) -> int:
    """Count the nodes of the syntax trees without docstrings: formatting changes none."""
    return sum(
        len(list(ast.walk(tree))) - 2 * sum(map(_has_docstring, ast.walk(tree)))
        for tree in (ast.parse(path.read_text("utf-8")) for path in folder.rglob("*.py"))
    )


def _has_docstring(node: ast.AST) -> bool:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None


def above(found: Mapping[str, int], budget: Mapping[str, int]) -> list[str]:
    """Name each weight above its bound. Raises KeyError for one without a bound."""
    return [
        f"{name}: {count}, and at most {budget[name]} are allowed"
        for name, count in found.items()
        if count > budget[name]
    ]


def _lines(folder: Path, pattern: str) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in folder.glob(pattern))


def _written_by_hand(folder: Path) -> int:
    """Count the lines of the pages, excluding the tables of pages that the code prints."""
    return sum(
        not (path.name in PRINTED and line.startswith("|"))
        for path in folder.glob("*.md")
        for line in path.read_text("utf-8").splitlines()
    )


@contextmanager
def shown_calls(see: Callable[[FrameType], None]) -> Iterator[None]:
    """Call ``see`` with the frame of each function of the package that begins in the block."""

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and _room(frame) is not None:
            see(frame)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def _note_crossing(crossed: list[tuple[str, str]], frame: FrameType) -> None:
    """Record the caller of a function of another room of the package, and the function."""
    caller = frame.f_back
    while caller is not None and _room(caller) is None:
        caller = caller.f_back
    if caller is not None and _room(caller) != _room(frame):
        crossed.append((_function(caller), _function(frame)))


def _room(frame: FrameType) -> str | None:
    path = frame.f_code.co_filename
    if not path.startswith(f"{PACKAGE}/"):
        return None
    parts = Path(path).relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "."


def _function(frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename).relative_to(PACKAGE)
    return f"{path}:{frame.f_code.co_qualname}"


async def _views() -> int:
    from sqlalchemy import inspect

    from litellm_messplus.store.database import create_engine, migrate

    with tempfile.TemporaryDirectory() as folder:
        database = create_engine(f"sqlite+aiosqlite:///{folder}/messplus.db")
        await migrate(database)
        async with database.connect() as connection:
            names = await connection.run_sync(lambda found: inspect(found).get_view_names())
        await database.dispose()
    return len(names)


async def crossings() -> list[tuple[str, str]]:
    """Walk five chat requests through the real plugin; return the shortest walk of the last three:
    the others may include parallel work."""
    from tests.support.in_process import DEPLOYMENTS, call, running

    walked: list[list[tuple[str, str]]] = []
    with tempfile.TemporaryDirectory() as folder:
        async with running(Path(folder)) as plugin:
            for number in range(5):
                messages = [{"role": "user", "content": f"What is 2 + {number}?"}]
                walked.append([])
                with shown_calls(partial(_note_crossing, walked[-1])):
                    await plugin.async_filter_deployments(
                        "zoo", DEPLOYMENTS, messages, call(f"call-{number}")
                    )
    return min(walked[2:], key=len)


def main() -> None:
    parser = argparse.ArgumentParser(description="What the house weighs, and how it is divided.")
    parser.add_argument("folder", type=Path, nargs="?", default=PACKAGE, help="a package's folder")
    parser.add_argument("--json", action="store_true", help="the weights, as JSON")
    parser.add_argument("--check", action="store_true", help="fail above the budget")
    chosen = parser.parse_args()
    if not chosen.json and not chosen.check:
        print(report(chosen.folder.resolve()))
        return
    found = weights()
    print(json.dumps(found))
    too_much = above(found, tomllib.loads(BUDGET.read_text("utf-8"))) if chosen.check else []
    if too_much:
        raise SystemExit(
            "\n".join(["The house weighs more than benchmarks/budget.toml:", *too_much])
        )


if __name__ == "__main__":
    main()
