"""The counters that the package counts in, by the names given to `add`, `failure` and
`tolerated`."""

import ast
from collections.abc import Iterator
from functools import cache

from tests.support.markdown import ROOT


@cache
def counted() -> frozenset[str]:
    paths = (ROOT / "litellm_messplus").rglob("*.py")
    return frozenset(name for path in paths for name in counters_in(path.read_text("utf-8")))


def counters_in(source: str) -> Iterator[str]:
    """The names given to counters, and to periodic jobs."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=(ast.Attribute(attr=owner) | ast.Name(id=owner)),
                    attr="add" | "failure" | "tolerated",
                ),
                args=[ast.Constant(value=str(name)), *_],
            ) if owner.endswith("counters"):
                yield name
            case ast.Call(
                func=ast.Name(id="partial"),
                args=[ast.Attribute(attr="failure"), ast.Constant(value=str(name))],
            ):
                yield name
            case ast.Call(
                func=ast.Attribute(attr="every"),
                args=[_, _, ast.Constant(value=str(name)), *_],
            ):
                yield name
