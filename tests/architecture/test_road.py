"""The road of a request through the proxy is the one that the docstring of `proxy/` shows."""

import ast
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.architecture.test_rooms import PACKAGE, imports
from tests.support.in_process import DEPLOYMENTS, call, log_event, running

DOCSTRING = ast.get_docstring(ast.parse((PACKAGE / "proxy" / "__init__.py").read_text())) or ""
ORDER = re.findall(r"^(\w+)/?  ", DOCSTRING, re.M)
NAMES_OF_LITELLM = "litellm_seam"
"""LiteLLM under names of our own: a request makes no stay there."""
WALKED = {*ORDER, "deciding", "encoders", "journal"} - {NAMES_OF_LITELLM}
MOST = 16


def road(name: str) -> list[str]:
    """The rooms that the docstring shows of a road."""
    found = re.search(rf"^{name}: (.*(?:\n    .*)*)", DOCSTRING, re.M)
    assert found is not None
    return re.split(r",\s+", found[1])


def room_of(path: str) -> str | None:
    """The module of the proxy, or the room beside it, that a file belongs to."""
    if not path.startswith(f"{PACKAGE}/"):
        return None
    parts = Path(path).relative_to(PACKAGE).with_suffix("").parts
    return parts[1] if parts[0] == "proxy" else parts[0]


class Walk:
    """Every call between the rooms while it is entered."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.climbs: set[tuple[str, str]] = set()

    def __enter__(self) -> "Walk":
        sys.setprofile(self._see)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        room = room_of(frame.f_code.co_filename)
        if room is None or room not in WALKED:
            return
        if room not in self.entered:
            self.entered.append(room)
        caller = room_of(frame.f_back.f_code.co_filename) if frame.f_back else None
        if caller in ORDER and room in ORDER and ORDER.index(room) < ORDER.index(caller):
            self.climbs.add((str(caller), room))


@pytest.mark.parametrize("name", ORDER)
def test_each_module_of_the_proxy_imports_only_those_below_it(name: str) -> None:
    found = {
        parts[2]
        for _, module in imports(f"proxy/{name}")
        if (parts := module.split("."))[:2] == ["litellm_messplus", "proxy"] and len(parts) > 2
    }

    assert [each for each in found if ORDER.index(each) < ORDER.index(name)] == []


async def test_a_request_walks_the_road_and_never_climbs(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "What is 2 + 2?"}]
    arguments = call("call-1")
    answer = {"id": "chatcmpl-1", "choices": [{"message": {"content": "4"}}]}
    async with running(tmp_path) as plugin:
        with Walk() as decided:
            await plugin.async_filter_deployments("zoo", DEPLOYMENTS, messages, arguments)
        with Walk() as answered:
            event = log_event(arguments, "small", id="chatcmpl-1")
            await plugin.async_log_success_event(event, answer, None, None)
        counted = plugin.counters.as_dict()

    assert counted == {}
    assert decided.entered == road("decided")
    assert answered.entered == road("answered")
    assert len(decided.entered) <= MOST
    assert not decided.climbs | answered.climbs
