"""How the code is divided: the modules, their lengths and the circles among their imports.

    python -m benchmarks.house [FOLDER]

FOLDER is the package to measure, this project's own if left out. Files of re-exports, which hold
nothing but a docstring, imports and `__all__`, are counted apart: they are short on purpose.
"""

import argparse
import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

PACKAGE = Path(__file__).parents[1] / "litellm_messplus"
SHORT = 60
"""Lines below which a module counts as short."""


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
        """The short modules as a share of those that are no re-exports."""
        return self.short / max(self.modules - self.re_exports, 1)


def read_package(folder: Path) -> list[Module]:
    """Read every module below a package's folder."""
    sources = {_module_name(folder, path): path for path in sorted(folder.rglob("*.py"))}
    return [_read(folder, name, path, sources.keys()) for name, path in sources.items()]


def figures(modules: Sequence[Module]) -> Figures:
    """Count a set of modules; medians leave files of re-exports out where there are others."""
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
    """Group the modules by the first folder below the package; those above all rooms are `.`."""
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
    """Name what is loaded together with the module; imports inside functions come later."""
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
    """Say the figures of a package, of each of its rooms, and its circles of imports."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description="How the code is divided into modules.")
    parser.add_argument("folder", type=Path, nargs="?", default=PACKAGE, help="a package's folder")
    print(report(parser.parse_args().folder.resolve()))


if __name__ == "__main__":
    main()
