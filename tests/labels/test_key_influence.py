"""One key cannot steer what the others pay; a key that is alone, or large, or usual is not held."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from statistics import mean

import pytest
from hypothesis import given as holds_for
from hypothesis import strategies as st

from litellm_messplus.costs.price import Price
from litellm_messplus.engine import Engine, Question
from litellm_messplus.labels.influence import KeyActivity, LevelActivity, may_count
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.state.entries import Example
from tests.support.builders import (
    build_engine,
    build_zoo,
    decided,
    example,
    labelled,
    pair,
    settled,
)
from tests.support.closed_loop import TOKENS, Model

INFLUENCE = 0.005
OFF = 1.0


def level(requests: int = 1000, **keys: tuple[int, int, float]) -> LevelActivity:
    """Of (requests, judged, satisfied) each."""
    return LevelActivity(requests, {name: KeyActivity(*told) for name, told in keys.items()})


def counted(known: LevelActivity, key: str, said: list[float], influence: float) -> list[bool]:
    """Which of these verdicts count, one after the other."""
    found = []
    for value in said:
        found.append(may_count(known, key, value, None, influence))
        if found[-1]:
            known.keys[key] = known.of(key).after(value, None)
    return found


def test_a_key_that_is_alone_may_say_what_it_likes() -> None:
    assert all(counted(level(alone=(50, 0, 0.0)), "alone", [0.0] * 500, INFLUENCE))


def test_too_few_verdicts_of_others_are_nothing_to_hold_one_against() -> None:
    assert all(counted(level(others=(900, 19, 19.0)), "own", [0.0] * 500, INFLUENCE))


def test_what_the_others_would_not_say_counts_a_little_and_no_more() -> None:
    found = counted(level(others=(990, 400, 320.0)), "own", [0.0] * 100, INFLUENCE)
    assert sum(found) == 2
    assert found == sorted(found, reverse=True)


def test_that_all_is_well_is_held_to_the_same() -> None:
    found = counted(level(others=(990, 400, 160.0)), "own", [1.0] * 100, INFLUENCE)
    assert sum(found) < 10


@pytest.mark.parametrize("seed", range(5))
def test_a_key_whose_users_are_as_the_others_is_hardly_ever_held(seed: int) -> None:
    random = Random(seed)
    said = [float(random.random() < 0.75) for _ in range(300)]
    found = counted(level(others=(900, 1000, 750.0)), "own", said, INFLUENCE)
    assert sum(found) > 0.9 * len(found)


def test_a_key_that_makes_half_of_the_requests_may_differ() -> None:
    """Of two keys with the same traffic, one whose users are content with half as much."""
    said = [0.0, 1.0] * 100
    assert all(counted(level(other=(500, 200, 150.0), own=(500, 0, 0.0)), "own", said, INFLUENCE))


def test_what_brings_a_key_nearer_to_the_others_always_counts() -> None:
    known = level(others=(990, 400, 320.0), own=(10, 30, 0.0))
    assert not may_count(known, "own", 0.0, None, INFLUENCE)
    assert may_count(known, "own", 1.0, None, INFLUENCE)


def test_a_revised_verdict_counts_as_one() -> None:
    known = level(others=(990, 400, 320.0), own=(10, 10, 8.0))
    assert may_count(known, "own", 1.0, 0.0, INFLUENCE)
    held = level(others=(990, 400, 320.0), own=(10, 40, 20.0))
    assert not may_count(held, "own", 0.0, 1.0, INFLUENCE)


SHARE = 0.1


def shared(known: LevelActivity, said: list[float]) -> int:
    """How many verdicts of one key count, with no other limit than its share."""
    counting = 0
    for value in said:
        if may_count(known, "own", value, None, OFF, SHARE):
            known.keys["own"] = known.of("own").after(value, None)
            counting += 1
    return counting


def test_one_key_gives_at_most_a_tenth_of_the_labels_that_count() -> None:
    """Though it says what the others say, so that it moves no rate."""
    known = level(others=(900, 90, 90.0))

    assert shared(known, [1.0] * 50) == 10


def test_labels_of_checks_and_judges_are_among_those_that_count() -> None:
    known = level(others=(900, 90, 90.0))
    known.of_no_key = 90

    assert shared(known, [1.0] * 50) == 20


def test_a_key_that_makes_more_of_the_requests_may_give_as_much_of_the_labels() -> None:
    assert shared(level(others=(500, 90, 90.0), own=(500, 0, 0.0)), [1.0] * 200) == 90


def test_a_key_may_change_its_mind_beyond_its_share() -> None:
    known = level(others=(900, 90, 90.0), own=(10, 30, 30.0))

    assert not may_count(known, "own", 1.0, None, OFF, SHARE)
    assert may_count(known, "own", 1.0, 0.0, OFF, SHARE)


@holds_for(
    said=st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=60),
    others=st.integers(0, 300),
    satisfied=st.floats(0.0, 1.0),
)
def test_switched_off_everything_counts(said: list[float], others: int, satisfied: float) -> None:
    assert all(counted(level(others=(900, others, others * satisfied)), "own", said, OFF))


# What it comes to: the others' cost

ZOO = (Model("small", 0.6, 1.0), Model("medium", 0.75, 10.0), Model("large", 0.9, 100.0))
ALPHA = 0.7
KEYS = 10
REQUESTS = 2400
ATTACK_AT = 800
SEEDS = range(8)
HOSTILE = "hostile"


@dataclass
class Town:
    """Ten keys whose users answer now and then, and one that calls everything unsatisfactory."""

    engine: Engine
    influence: float | None
    """None: the hostile one says nothing at all."""
    answered: float
    activity: LevelActivity = field(default_factory=LevelActivity)
    costs: list[float] = field(default_factory=list)
    number: int = 0

    def ask(self, key: str, random: Random) -> None:
        self.number += 1
        request_id, level = f"r{self.number}", self.engine.zoo.levels["default"]
        features = pair(random.uniform(-1, 1), random.uniform(-1, 1))
        drawn = {model.name: random.random() for model in ZOO}
        answers = random.random() < self.answered
        question = Question(request_id, level, Prompt(features), 40, self.engine.zoo.candidates)
        decision = self.engine.decide(question).decision
        shortfall = level.alpha - decision.expected_satisfaction
        self.engine.apply(decided(request_id=request_id, expected_shortfall=shortfall))
        for name in (decision.chosen, *decision.explored):
            self.engine.apply(settled(name, completion_tokens=TOKENS))
            if key != HOSTILE:
                self.costs.append(KNOWN[name].cost)
        self.activity.requests += 1
        self.activity.keys[key] = self.activity.of(key)
        self.activity.keys[key].requests += 1
        told = {"request_id": request_id, "features": features}
        value = KNOWN[decision.chosen].satisfies(drawn[decision.chosen], False)
        if key != HOSTILE and answers:
            self.judge(key, value, example(decision.chosen, **told))
        if key == HOSTILE and self.influence is not None:
            self.judge(key, 0.0, example(decision.chosen, **told))

    def judge(self, key: str, value: float, taught: Example) -> None:
        influence = OFF if self.influence is None else self.influence
        if not may_count(self.activity, key, value, None, influence):
            return
        self.activity.keys[key] = self.activity.of(key).after(value, None)
        self.engine.apply(
            labelled(
                value,
                alpha=ALPHA,
                request_id=taught.request_id,
                call_id=f"{taught.request_id}.0",
                example=taught,
            )
        )


KNOWN: Mapping[str, Model] = {model.name: model for model in ZOO}


def others_cost(influence: float | None, seed: int, burst: int, every: int) -> float:
    """The mean cost of the ten keys' requests from the attack on."""
    prices = {model.name: Price(0.0, model.cost / TOKENS) for model in ZOO}
    engine = build_engine(build_zoo(prices, alpha=ALPHA), seed)
    town, random, other = Town(engine, influence, 0.3), Random(seed), Random(f"hostile {seed}")
    for number in range(REQUESTS):
        if number == ATTACK_AT:
            town.costs.clear()
            for _ in range(burst):
                town.ask(HOSTILE, other)
        if number > ATTACK_AT and every and number % every == 0:
            town.ask(HOSTILE, other)
        town.ask(f"key-{number % KEYS}", random)
    return mean(town.costs)


@pytest.mark.parametrize(("burst", "every"), [(40, 0), (0, 20)], ids=["40 at once", "for ever"])
def test_one_hostile_key_changes_the_others_cost_by_a_tenth_at_most(burst: int, every: int) -> None:
    def paid(influence: float | None, seeds: range = SEEDS) -> float:
        return mean(others_cost(influence, seed, burst, every) for seed in seeds)

    silent = paid(None)
    assert paid(INFLUENCE) == pytest.approx(silent, rel=0.1)
    assert paid(OFF, SEEDS[:2]) > 2.0 * silent
