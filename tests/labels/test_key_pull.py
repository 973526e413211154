"""Honest keys' labels count, whoever else is silent or lies; what one key moves is bounded."""

from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given as holds_for
from hypothesis import settings
from hypothesis import strategies as st

from benchmarks.keys import ALONE, HONEST, Case, Outcome, compare, equal, serve
from litellm_messplus.labels.checks.shipped import CompleteCheck, JsonSchemaCheck
from litellm_messplus.labels.key_pull import (
    FAULT_FINDERS,
    KeyActivity,
    LabelContent,
    LevelActivity,
    Tally,
    may_count,
)

LEAST = 0.005
TRUTH = 0.75
Reports = Callable[[float], LabelContent]


def honest(value: float) -> LabelContent:
    return LabelContent(value, 1.0)


def opposite(value: float) -> LabelContent:
    return LabelContent(1.0 - value, 1.0)


def unsatisfied(value: float) -> LabelContent:
    return LabelContent(0.0, 1.0)


def satisfied(value: float) -> LabelContent:
    return LabelContent(1.0, 1.0)


def impossible_checks(value: float) -> LabelContent:
    return LabelContent(0.0, 1.0, is_fault=True)


HOSTILE = (opposite, unsatisfied, satisfied, impossible_checks)


class Traffic:
    """Requests of keys by their shares, and what each key reports of the part that it labels."""

    def __init__(self, shares: Sequence[float], judges: Tally | None = None) -> None:
        self.level = LevelActivity(
            keys={str(place): KeyActivity() for place in range(len(shares))},
            judges=judges or Tally(),
        )
        self.given = [0] * len(shares)
        self.counted = [0] * len(shares)
        self._shares = shares

    def serve(
        self,
        requests: int,
        judged: Sequence[float],
        reports: Sequence[Reports],
        rates: Sequence[float] | None = None,
        seed: int = 0,
    ) -> "Traffic":
        random, places = Random(seed), range(len(self._shares))
        for _ in range(requests):
            place = random.choices(places, self._shares)[0]
            value = float(random.random() < (rates[place] if rates else TRUTH))
            self._asked(str(place))
            if random.random() < judged[place]:
                self._says(place, reports[place](value))
        return self

    def _asked(self, key: str) -> None:
        known = self.level.of(key)
        self.level.requests += 1
        self.level.keys[key] = KeyActivity(known.requests + 1, known.labels, known.faults)

    def _says(self, place: int, said: LabelContent) -> None:
        key = str(place)
        self.given[place] += 1
        if may_count(self.level, key, said, least=LEAST):
            self.counted[place] += 1
            self.level.keys[key] = self.level.of(key).after(said)

    def counting(self, places: Sequence[int]) -> float:
        """The share of these keys' labels that count."""
        return sum(self.counted[place] for place in places) / max(
            sum(self.given[place] for place in places), 1
        )

    def moved(self, liars: Sequence[int]) -> float:
        """By how much the mean of all labels differs from that of the others."""
        every = list(self.level.keys.values())
        others = [self.level.of(str(p)) for p in range(len(every)) if p not in liars]
        told = sum(each.labels.satisfied for each in every) / sum(each.weight for each in every)
        truth = sum(each.labels.satisfied for each in others) / sum(each.weight for each in others)
        return abs(told - truth)


# Honest keys


@pytest.mark.parametrize("keys", [1, 2, 3, 5, 10, 20])
@pytest.mark.parametrize("judged", [1.0, 0.1])
@pytest.mark.parametrize("is_equal", [True, False])
def test_nine_of_ten_labels_of_honest_keys_count(keys: int, judged: float, is_equal: bool) -> None:
    shares = [1.0 if is_equal else 1.0 / (place + 1) for place in range(keys)]
    found = Traffic(shares).serve(2000, [judged] * keys, [honest] * keys)
    assert found.counting(range(keys)) >= 0.9


@settings(max_examples=40, deadline=None)
@holds_for(
    mix=st.lists(
        st.tuples(st.sampled_from([1.0, 2.0, 5.0, 20.0]), st.sampled_from([0.0, 0.1, 0.3, 1.0])),
        min_size=1,
        max_size=20,
    ),
    rate=st.floats(0.5, 0.95),
    seed=st.integers(0, 1000),
)
def test_nine_of_ten_honest_count(mix: list[tuple[float, float]], rate: float, seed: int) -> None:
    """Busy and idle ones, those that label all and those that are silent."""
    keys = len(mix)
    found = Traffic([share for share, _ in mix]).serve(
        2000, [judged for _, judged in mix], [honest] * keys, [rate] * keys, seed
    )
    assert sum(found.given) < 200 or found.counting(range(keys)) >= 0.9


@pytest.mark.parametrize(
    ("shares", "judged"),
    [([6.0, 1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0, 1.0]), ([9.0, 1.0], [0.0, 1.0])],
)
def test_a_silent_key_holds_nobody(shares: list[float], judged: list[float]) -> None:
    rates = [0.75, 0.6, 0.7, 0.8, 0.95][: len(shares)]
    found = Traffic(shares).serve(2000, judged, [honest] * len(shares), rates)
    assert found.counting(range(len(shares))) >= 0.9


def test_two_keys_may_differ_as_they_like() -> None:
    found = Traffic([1.0, 1.0]).serve(1000, [1.0, 1.0], [honest] * 2, [0.3, 0.95])
    assert found.counting([0, 1]) >= 0.99


def test_a_key_that_is_alone_may_say_what_it_likes() -> None:
    for reports in HOSTILE:
        assert Traffic([1.0]).serve(300, [1.0], [reports]).counting([0]) == 1.0


@pytest.mark.parametrize("reports", HOSTILE)
def test_a_key_that_lies_does_not_lock_the_others(reports: Reports) -> None:
    found = Traffic([1.0] * 10).serve(2000, [1.0] * 10, [honest] * 9 + [reports])
    assert found.counting(range(9)) >= 0.95


# Hostile keys


@pytest.mark.parametrize("reports", HOSTILE)
@pytest.mark.parametrize("judged", [1.0, 0.1])
@pytest.mark.parametrize("liars", [1, 2])
def test_a_tenth_moves_at_most_two_points(reports: Reports, judged: float, liars: int) -> None:
    """And two keys twice as much. The hostile ones label every request from the first one on."""
    others = 10 - liars
    shares, given = [1.0] * 10, [judged] * others + [1.0] * liars
    found = Traffic(shares).serve(6000, given, [honest] * others + [reports] * liars)
    assert found.moved(range(others, 10)) <= 0.02 * liars


@settings(max_examples=40, deadline=None)
@holds_for(
    others=st.lists(
        st.tuples(st.sampled_from([1.0, 2.0, 5.0]), st.sampled_from([0.1, 0.3, 1.0])),
        min_size=2,
        max_size=19,
    ),
    share=st.floats(0.2, 5.0),
    reports=st.sampled_from(HOSTILE),
    seed=st.integers(0, 1000),
)
def test_no_key_moves_more_than_its_share_of_the_requests_allows(
    others: list[tuple[float, float]], share: float, reports: Reports, seed: int
) -> None:
    """``LEAST``, and half the square of its requests per request of the others; while there are few
    labels, by seven of them at most."""
    keys = len(others)
    judged = [each for _, each in others] + [1.0]
    found = Traffic([each for each, _ in others] + [share]).serve(
        2000, judged, [honest] * keys + [reports], seed=seed
    )
    known = [found.level.of(str(place)) for place in range(keys + 1)]
    labels = sum(each.weight for each in known)
    odds = known[-1].requests / sum(each.requests for each in known[:-1])
    assert found.moved([keys]) <= LEAST + odds**2 / 2.0 + 7.0 / labels


def test_judges_labels_show_what_is_usual_where_no_other_key_labels() -> None:
    """And lift no limit: 123 of them, and all the feedback there is of one key of ten."""
    found = Traffic([1.0] * 10, Tally(123.0, 100.0)).serve(
        800, [0.0] * 9 + [1.0], [honest] * 9 + [unsatisfied]
    )
    assert found.given[9] >= 60
    assert found.counted[9] <= 4


def test_faults_are_compared_with_the_requests_of_others_in_which_none_was_found() -> None:
    found = Traffic([1.0] * 10).serve(800, [0.0] * 9 + [1.0], [honest] * 9 + [impossible_checks])
    assert found.given[9] >= 60
    assert found.counted[9] <= 4


def test_nine_of_ten_failures_of_an_outage_that_meets_all_keys_count() -> None:
    found = Traffic([1.0] * 10).serve(1000, [1.0] * 10, [honest] * 10)
    given, counted = sum(found.given), sum(found.counted)
    found.serve(200, [0.9] * 10, [impossible_checks] * 10)
    assert sum(found.counted) - counted >= 0.9 * (sum(found.given) - given)


def test_checks_and_feedback_have_one_limit_together() -> None:
    found = Traffic([1.0] * 10).serve(2000, [1.0] * 10, [honest] * 9 + [unsatisfied])
    refused = LabelContent(0.0, 1.0, is_fault=True)
    assert not may_count(found.level, "9", LabelContent(0.0, 1.0), least=LEAST)
    assert not may_count(found.level, "9", refused, least=LEAST)


# A label


def level(**keys: KeyActivity) -> LevelActivity:
    found = LevelActivity(sum(each.requests for each in keys.values()))
    for name, each in keys.items():
        found.keys[name] = each
    return found


OTHERS = KeyActivity(990, Tally(400.0, 300.0))


def test_what_brings_a_key_nearer_to_the_others_always_counts() -> None:
    known = level(others=OTHERS, own=KeyActivity(10, Tally(30.0, 0.0)))
    assert not may_count(known, "own", LabelContent(0.0, 1.0), least=LEAST)
    assert may_count(known, "own", LabelContent(1.0, 1.0), least=LEAST)


def test_a_revised_label_counts_as_one() -> None:
    known = level(others=OTHERS, own=KeyActivity(10, Tally(10.0, 8.0)))
    assert may_count(known, "own", LabelContent(1.0, 1.0), LabelContent(0.0, 1.0), least=LEAST)
    far = level(others=OTHERS, own=KeyActivity(10, Tally(40.0, 20.0)))
    assert not may_count(far, "own", LabelContent(0.0, 1.0), LabelContent(1.0, 1.0), least=LEAST)


def test_a_weak_label_moves_less() -> None:
    known = level(others=OTHERS, own=KeyActivity(10, Tally(5.0, 0.0)))
    assert not may_count(known, "own", LabelContent(0.0, 1.0), least=LEAST)
    assert may_count(known, "own", LabelContent(0.0, 0.3), least=LEAST)


def test_requests_without_a_fault_are_no_praise() -> None:
    """Of a key that has none where others do, good labels count as those of any other."""
    others = KeyActivity(990, Tally(400.0, 300.0), faults=50.0)
    known = level(others=others, own=KeyActivity(500, Tally(40.0, 30.0)))
    assert may_count(known, "own", LabelContent(1.0, 1.0), least=LEAST)


@holds_for(
    value=st.sampled_from([0.0, 0.5, 1.0]),
    own=st.integers(0, 300),
    good=st.floats(0.0, 1.0),
)
def test_switched_off_everything_counts(value: float, own: int, good: float) -> None:
    known = level(others=OTHERS, own=KeyActivity(10, Tally(own, own * good)))
    assert may_count(known, "own", LabelContent(value, 1.0), least=1.0)


def test_the_checks_that_never_praise_are_known_by_their_names() -> None:
    checks = {f"check:{each.name}" for each in (CompleteCheck, JsonSchemaCheck)}
    assert set(FAULT_FINDERS) == checks


# What it comes to in a closed loop, through the engine


@pytest.mark.parametrize("case", ALONE[:2], ids=lambda case: case.name)
def test_one_hostile_key_changes_the_others_cost_by_a_tenth_at_most(case: Case) -> None:
    def paid(served: Case) -> float:
        return Outcome.mean([serve(served, seed, 3000) for seed in range(4)]).cost

    assert paid(case) <= 1.1 * paid(equal(10, 1.0))


def test_the_benchmark_has_honest_keys_of_every_kind() -> None:
    assert {len(case.shares) for case in HONEST} >= {1, 2, 3, 5, 10, 20}


def test_the_benchmark_compares_seed_by_seed() -> None:
    """What differs between the seeds, but not between the cases, is no error."""
    base = [Outcome(1.0, 0.70, cost) for cost in (2.0, 3.0, 4.0)]
    found = [Outcome(1.0, each.satisfied + 0.01, 1.1 * each.cost) for each in base]
    told = compare(ALONE[0], found, base)
    assert (told["moved_points"], told["cost"]) == pytest.approx((1.0, 1.1))
    assert (told["moved_points_error"], told["cost_error"]) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert compare(ALONE[0], found[::-1], base)["cost_error"] == pytest.approx(2.2 / 3 / 3**0.5)
