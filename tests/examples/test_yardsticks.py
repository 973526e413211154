"""What could have been had, of answers that are known."""

from typing import Any

import pytest

from examples.tiny_zoo.demo.asides import Aside
from examples.tiny_zoo.demo.report import Alone, Answers, Yardsticks

TOKENS = (12, 6, 0)


def asked(small: bool, large: bool, *, costs: tuple[float | None, float | None]) -> Answers:
    """Two models' answers to one task."""
    return {
        "small": Aside("d-small", small, costs[0], TOKENS),
        "large": Aside("d-large", large, costs[1], TOKENS),
    }


def outcome(cost: float = 1.0, *, alpha: float = 0.75, **more: Any) -> dict[str, Any]:
    """A request that the small model served, as the proxy shows it."""
    call = {
        "candidate": "small",
        "deployment_id": "d-small",
        "prompt_tokens": 12,
        "completion_tokens": 6,
        "cached_tokens": 0,
        "cost": cost,
        "is_cache_hit": False,
        **more,
    }
    return {"alpha": alpha, "calls": [call]}


EASY = asked(True, True, costs=(1.0, 10.0))
HARD = asked(False, True, costs=(1.0, 10.0))
FOUR = [EASY, EASY, HARD, HARD]


def test_the_mix_and_the_oracle_by_hand() -> None:
    """The small model satisfies half, so the mix takes half of the large one's 40 and of the small
    one's 4; the oracle calls the large one for one of the two hard tasks."""
    found = Yardsticks.of(FOUR, [outcome()] * 4)

    assert (found.hindsight_mix, found.oracle) == pytest.approx((22.0, 13.0))
    assert found.alone == {"small": Alone(0.5, 4.0), "large": Alone(1.0, 40.0)}
    assert found.note is None


def test_a_cost_that_litellm_does_not_state_is_unknown_and_not_zero() -> None:
    found = Yardsticks.of([EASY, asked(True, True, costs=(1.0, None))], [outcome()] * 2)

    assert (found.hindsight_mix, found.oracle) == (None, None)
    assert found.note == "not known: LiteLLM states no cost of large"


@pytest.mark.parametrize("counted", [0.5, 1.02, 1e6])
def test_dollars_are_not_set_against_another_unit(counted: float) -> None:
    found = Yardsticks.of(FOUR, [outcome(counted)] * 4)

    assert found.hindsight_mix is None
    assert found.note is not None
    assert found.note.startswith("not known: LiteLLM charges $4 for calls of small")
