"""In a closed loop `adaptive` holds alpha, at a fraction of the cost of always the largest."""

from statistics import mean

import pytest

from tests.support.closed_loop import Model, Run, run

ALPHA = 0.75
REQUESTS = 1500
SEEDS = range(5)
ZOO = (Model("small", 0.45, 1.0), Model("medium", 0.7, 4.0), Model("large", 0.9, 20.0))
ALWAYS_LARGEST = REQUESTS * ZOO[-1].cost


def runs(answered: float = 1.0, delay: int = 0) -> list[Run]:
    return [
        run(ZOO, alpha=ALPHA, requests=REQUESTS, seed=seed, delay=delay, answered=answered)
        for seed in SEEDS
    ]


@pytest.mark.parametrize("delay", [0, 50], ids=["labels at once", "labels 50 requests late"])
def test_it_holds_alpha_and_saves(delay: int) -> None:
    ended = runs(delay=delay)
    assert mean(each.rate for each in ended) == pytest.approx(ALPHA, abs=0.02)
    assert all(each.rate > ALPHA - 0.04 for each in ended)
    assert mean(each.cost for each in ended) < 0.8 * ALWAYS_LARGEST


def test_it_holds_alpha_where_only_half_of_the_users_answer() -> None:
    ended = runs(answered=0.5)
    assert mean(each.rate for each in ended) == pytest.approx(ALPHA, abs=0.03)
    assert mean(each.cost for each in ended) < 0.8 * ALWAYS_LARGEST


def test_it_ends_the_same_in_another_unit_of_cost() -> None:
    plain, other = (
        run(ZOO, alpha=ALPHA, requests=300, seed=7, unit=unit) for unit in (1.0, 2.0**-20)
    )
    assert other.served == plain.served


def test_the_same_seed_decides_the_same() -> None:
    first, second = (run(ZOO, alpha=ALPHA, requests=300, seed=3) for _ in range(2))
    assert first.decisions == second.decisions


def test_a_cheap_model_that_holds_alpha_serves_nearly_all() -> None:
    zoo = (Model("small", 0.9, 1.0), Model("large", 0.95, 20.0))
    ended = [run(zoo, alpha=ALPHA, requests=800, seed=seed) for seed in SEEDS]
    assert mean(each.served.count("small") for each in ended) > 0.9 * 800


def test_where_nobody_holds_alpha_the_price_stays_bounded() -> None:
    """Satisfaction out of reach is not chased at any price."""
    zoo = (Model("small", 0.5, 1.0), Model("large", 0.52, 100.0))
    ended = [run(zoo, alpha=0.95, requests=800, seed=seed) for seed in SEEDS]
    assert mean(each.cost for each in ended) < 0.5 * 800 * 100.0


@pytest.mark.parametrize("cost", [0.0, 1.0], ids=["free", "paid"])
def test_among_equally_priced_models_it_finds_the_one_that_holds_alpha(cost: float) -> None:
    zoo = (Model("bad", 0.45, cost), Model("good", 0.9, cost))
    ended = [run(zoo, alpha=ALPHA, requests=400, seed=seed) for seed in SEEDS]
    assert mean(each.rate for each in ended) > ALPHA


def test_where_the_prompt_tells_who_will_do_alpha_is_held_for_less_than_any_mix_costs() -> None:
    """The small model fails at long prompts. By the means, the large one must serve 60 percent of
    all requests; it need not serve a short one."""
    zoo = (Model("small", 0.95, 1.0, on_long=0.1), Model("large", 0.9, 20.0))
    ended = [run(zoo, alpha=ALPHA, requests=REQUESTS, seed=seed) for seed in SEEDS]
    mix = REQUESTS * (1.0 + 0.6 * 19.0)
    assert mean(each.rate for each in ended) == pytest.approx(ALPHA, abs=0.02)
    assert all(each.rate > ALPHA - 0.04 for each in ended)
    assert mean(each.cost for each in ended) < 0.75 * mix


def test_where_nobody_holds_alpha_a_plan_keeps_the_price_bounded_too() -> None:
    zoo = (Model("small", 0.8, 1.0, on_long=0.2), Model("large", 0.82, 100.0, on_long=0.22))
    ended = [run(zoo, alpha=0.95, requests=800, seed=seed) for seed in SEEDS]
    assert mean(each.cost for each in ended) < 0.5 * 800 * 100.0
