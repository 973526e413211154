"""When to explore: p_t of the paper, drawn from a counter."""

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.draws import uniform
from litellm_messplus.routing.decision import exploration_probability


@pytest.mark.parametrize(
    ("t", "c", "expected"),
    [
        (1, 0.1, 0.1),
        (16, 0.1, 0.05),  # 16^(1/4) = 2
        (81, 0.3, 0.1),  # 81^(1/4) = 3
        (10_000, 0.1, 0.01),  # 10000^(1/4) = 10
        (16, 2.0, 1.0),  # 2 / 2, just certain
        (2, 5.0, 1.0),  # more than certain is certain
        (7, 0.0, 0.0),
    ],
)
def test_probability_is_c_over_the_fourth_root_of_t(t: int, c: float, expected: float) -> None:
    assert exploration_probability(t, c) == pytest.approx(expected, rel=1e-12)


@given(st.integers(1, 10**9), st.floats(0.0, 100.0))
def test_probability_is_at_most_one_and_never_rises_with_t(t: int, c: float) -> None:
    now, later = exploration_probability(t, c), exploration_probability(t + 1, c)
    assert 0.0 <= later <= now <= 1.0


@given(st.integers(), st.text(), st.integers(1, 10**12))
def test_a_draw_is_in_the_half_open_unit_interval_and_repeatable(
    seed: int, stream: str, t: int
) -> None:
    first = uniform(seed, stream, t)
    assert 0.0 <= first < 1.0
    assert uniform(seed, stream, t) == first


def test_a_draw_is_the_same_in_another_process() -> None:
    code = "from litellm_messplus.draws import uniform;print(repr(uniform(7, 'zoo/default', 3)))"
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(printed.stdout) == uniform(7, "zoo/default", 3)


def test_draws_are_uniform() -> None:
    """Kolmogorov-Smirnov over one stream: at 20,000 draws, 1.95 / sqrt(n) is one in a thousand."""
    count = 20_000
    drawn = sorted(uniform(0, "zoo/default", t) for t in range(1, count + 1))
    furthest = max(
        max(value - rank / count, (rank + 1) / count - value) for rank, value in enumerate(drawn)
    )
    assert furthest < 1.95 / math.sqrt(count)


@pytest.mark.parametrize(
    "others",
    [
        [uniform(1, "zoo/default", t) for t in range(1, 2001)],
        [uniform(0, "zoo/gold", t) for t in range(1, 2001)],
        [uniform(0, "zoo/default", t) for t in range(2, 2002)],
    ],
    ids=["another seed", "another stream", "the next t"],
)
def test_draws_do_not_hang_together(others: list[float]) -> None:
    """The correlation of 2,000 independent uniforms is below 0.08 but once in 3,000 times."""
    drawn = [uniform(0, "zoo/default", t) for t in range(1, 2001)]
    covariance = sum((a - 0.5) * (b - 0.5) for a, b in zip(drawn, others, strict=True)) / 2000
    assert abs(covariance * 12) < 0.08
