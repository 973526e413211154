"""LiteLLM's private names are in one module, so that an upgrade is read against one page."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROXY = ROOT / "litellm_messplus" / "serving"
SEAM = PROXY / "litellm_seam.py"
LIMITS = PROXY / "litellm_limits.py"
TRIED = PROXY / "litellm_fit.py"
"""The one that tries the seam's names at the start."""
DOCUMENTED = {"litellm", "litellm.integrations.custom_logger"}
"""Modules that LiteLLM's docs import from."""
PUBLIC = {
    *("token_counter", "get_llm_provider", "get_model_info", "model_cost"),
    *("cost_per_token", "Usage"),
    *("get_supported_openai_params", "drop_params", "stream_chunk_builder"),
    *("ContextWindowExceededError", "ContentPolicyViolationError"),
    *("BadRequestError", "UnprocessableEntityError", "exceptions"),
}
"""What the docs use of the package itself: functions, the price map, a setting, the errors."""
OUR_OWN = re.compile(r"self|cls|os")
PRIVATE = re.compile(r"_[a-z]\w*")


def touched(source: str) -> Iterator[str]:
    """Names of LiteLLM that its docs do not show: imported, read as an attribute or as a key."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if _is_internal(each.name))
            case ast.ImportFrom(module=str(module), names=names) if _is_internal(module):
                yield from (f"{module}.{each.name}" for each in names)
            case ast.ImportFrom(module="litellm", names=names):
                yield from (f"litellm.{each.name}" for each in names if each.name not in PUBLIC)
            case ast.Attribute(value=ast.Name(id="litellm"), attr=name) if name not in PUBLIC:
                yield f"litellm.{name}"
            case ast.Attribute(value=value, attr=name) if PRIVATE.fullmatch(name):
                if not OUR_OWN.fullmatch(ast.unparse(value)):
                    yield ast.unparse(node)
            case ast.Constant(value=str(name)) if PRIVATE.fullmatch(name):
                yield name


def _is_internal(module: str) -> bool:
    return module.split(".")[0] == "litellm" and module not in DOCUMENTED


@pytest.mark.parametrize(
    "module",
    [path for path in sorted(PROXY.rglob("*.py")) if path not in (SEAM, LIMITS, TRIED)],
    ids=lambda path: str(path.relative_to(PROXY)),
)
def test_no_other_module_touches_a_private_name(module: Path) -> None:
    """Only the room `proxy` knows LiteLLM at all: `test_rooms` holds the others to it."""
    assert list(touched(module.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from litellm.proxy import proxy_server", "litellm.proxy.proxy_server"),
        ("import litellm.types.utils", "litellm.types.utils"),
        ("import litellm\nlitellm.cache", "litellm.cache"),
        ("def f(response): return response._hidden_params", "response._hidden_params"),
        ("def f(kwargs): return kwargs.get('_target_order')", "_target_order"),
    ],
)
def test_a_private_name_is_found_however_it_is_reached(source: str, name: str) -> None:
    assert list(touched(source)) == [name]


def test_the_seam_itself_would_be_found() -> None:
    found = set(touched(SEAM.read_text(encoding="utf-8")))

    assert {"_target_order", "_hidden_params", "litellm.cache"} <= found
    assert "litellm.proxy.proxy_server" in found
