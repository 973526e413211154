"""When a request is held, by what its prompt shows and what an operator allows."""

import pytest

from litellm_messplus.core.hold import Hold, Mode, Signs, Trouble, hold_of, may_go_up

LOOP, SEALED = Signs(is_in_loop=True), Signs(is_in_loop=True, is_portable=False)


@pytest.mark.parametrize(
    ("mode", "signs", "saves", "expected"),
    [
        ("never", SEALED, True, None),
        ("tool_loop", SEALED, False, Hold.STATE),
        ("tool_loop", LOOP, False, Hold.TOOL_LOOP),
        ("tool_loop", Signs(), True, None),
        ("warm", LOOP, False, Hold.TOOL_LOOP),
        ("warm", Signs(), True, Hold.WARM),
        ("warm", Signs(), False, None),
    ],
)
def test_a_request_is_held_by_state_then_by_its_loop_then_by_its_cache(
    mode: Mode, signs: Signs, saves: bool, expected: Hold | None
) -> None:
    assert hold_of(mode, signs, saves=saves) is expected


def test_trouble_breaks_a_hold_once_and_not_where_nobody_else_could_read_on() -> None:
    assert may_go_up(LOOP, Trouble.REPEATED, went_up=False)
    assert not may_go_up(LOOP, Trouble.REPEATED, went_up=True)
    assert not may_go_up(SEALED, Trouble.REPEATED, went_up=False)
    assert not may_go_up(LOOP, None, went_up=False)
