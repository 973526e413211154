"""The road of a request through the proxy is the one that the docstring of `serving/` shows."""

import re
from pathlib import Path
from types import FrameType

import pytest

from benchmarks.house import shown_calls
from tests.architecture.test_rooms import ORDERS, PACKAGE, described, imports
from tests.support.in_process import DEPLOYMENTS, call, log_event, running

DOCSTRING, ORDER = described("serving"), ORDERS["serving"]
NAMES_OF_LITELLM = {"litellm_seam", "litellm_limits"}
"""LiteLLM under names of our own: a request makes no stay there."""
WALKED = {*ORDER, "brain", "encoders", "journal"} - NAMES_OF_LITELLM
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
    return parts[1] if parts[0] == "serving" else parts[0]


class Walk:
    """Which rooms were entered, and which calls went up the road."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.climbs: set[tuple[str, str]] = set()

    def see(self, frame: FrameType) -> None:
        room = room_of(frame.f_code.co_filename)
        if room is None or room not in WALKED:
            return
        if room not in self.entered:
            self.entered.append(room)
        caller = room_of(frame.f_back.f_code.co_filename) if frame.f_back else None
        if caller in ORDER and room in ORDER and ORDER.index(room) < ORDER.index(caller):
            self.climbs.add((str(caller), room))


@pytest.mark.parametrize(
    ("room", "name"), [(room, name) for room, order in ORDERS.items() for name in order]
)
def test_each_module_imports_only_those_below_it(room: str, name: str) -> None:
    found, order = (module.split(".") for _, module in imports(f"{room}/{name}")), ORDERS[room]
    inside = {parts[2] for parts in found if parts[1:2] == [room] and len(parts) > 2}

    assert [each for each in inside if order.index(each) < order.index(name)] == []


async def test_a_request_walks_the_road_and_never_climbs(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "What is 2 + 2?"}]
    arguments = call("call-1")
    answer = {"id": "chatcmpl-1", "choices": [{"message": {"content": "4"}}]}
    async with running(tmp_path) as plugin:
        decided, answered = Walk(), Walk()
        with shown_calls(decided.see):
            await plugin.async_filter_deployments("zoo", DEPLOYMENTS, messages, arguments)
        with shown_calls(answered.see):
            event = log_event(arguments, "small", id="chatcmpl-1")
            await plugin.async_log_success_event(event, answer, None, None)
        counted = plugin.counters.as_dict()

    assert counted == {}
    assert decided.entered == road("decided")
    assert answered.entered == road("answered")
    assert len(decided.entered) <= MOST
    assert not decided.climbs | answered.climbs
