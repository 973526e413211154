"""What it costs to stay and to switch, by hand, at Sonnet's prices; what caches usually save."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulation.policies import per_conversation
from litellm_messplus.core.caches import (
    DEPLOYMENTS,
    STEP,
    Ahead,
    Habits,
    Remaining,
    Turn,
    hold,
    now,
)
from litellm_messplus.core.digests import Digest
from litellm_messplus.core.line import Line, Place
from litellm_messplus.costs.price import Price, Tier, Usage
from tests.support.builders import LARGE, SMALL

MILLION = 1e-6
SONNET = Price(
    3.0 * MILLION,
    15.0 * MILLION,
    cached_discount=2.7 * MILLION,
    written_surcharge=0.75 * MILLION,
    cached_from=1024,
)
"""Per million: 3.00 read, 0.30 read from the cache, 3.75 written there, 15.00 answered."""
AGENT = Turn(60_000, growth=1_000, completion_tokens=400)


PLAIN = Price(3.0 * MILLION, 15.0 * MILLION)
TIERED = Price(1.0, 0.0, tiers=(Tier(100, Price(2.0, 0.0)),))
LONG_ENOUGH = Price(1.0, 0.0, cached_discount=0.9, cached_from=100)


@pytest.mark.parametrize(
    ("turn", "warm", "share", "cost"),
    [
        # 58,000 read from the cache, 2,000 written, 400 answered.
        (AGENT, 58_000, 1.0, 0.0174 + 0.0075 + 0.006),
        (AGENT, 0, 1.0, 0.225 + 0.006),  # 60,000 written: what a switch costs
        (AGENT, 0, 0.0, 0.18 + 0.006),  # clients mark nothing for the cache
        (Turn(2_000, 0, 0), 9_000, 1.0, 2_000 * 0.3 * MILLION),  # no more is warm than there is
        (Turn(1_000, 0, 0), 0, 1.0, 0.003),  # too short to be written
        (Turn(1_024, 0, 0), 0, 1.0, 1_024 * 3.75 * MILLION),
    ],
)
def test_this_call_by_hand(turn: Turn, warm: float, share: float, cost: float) -> None:
    assert now(SONNET, turn, warm, share) == pytest.approx(cost)
    assert hold(SONNET, turn, warm, 0, share) == now(SONNET, turn, warm, share)


@pytest.mark.parametrize(
    ("price", "turn", "warm", "remaining", "share", "cost"),
    [
        # Two more, of 61,000 and 62,000 tokens: each reads what the one before had, 60,000 and
        # 61,000, writes 1,000 and answers 400.
        (SONNET, AGENT, 58_000, 2, 1.0, 0.0309 + 0.0183 + 0.018 + 2 * (0.00375 + 0.006)),
        (PLAIN, AGENT, 0, 2, 1.0, 0.186 + (61_000 + 62_000) * 3.0 * MILLION + 2 * 0.006),
        (SONNET, AGENT, 0, 2, 0.0, 0.186 + (61_000 + 62_000) * 3.0 * MILLION + 2 * 0.006),
        (TIERED, Turn(90, 10, 0), 0, 3, 1.0, 90 + 2.0 * (100 + 110 + 120)),
        (LONG_ENOUGH, Turn(50, 10, 0), 0, 1, 1.0, 50 + 60),
        (LONG_ENOUGH, Turn(90, 10, 0), 0, 1, 1.0, 90 + 0.1 * 90 + 10),
    ],
    ids=[
        *("an agent's", "without a cache", "nothing is marked for it", "growing above a limit"),
        *("too short to be cached", "long enough once they have grown"),
    ],
)
def test_to_hold_is_this_call_and_the_coming_ones_by_hand(
    price: Price, turn: Turn, warm: float, remaining: float, share: float, cost: float
) -> None:
    assert hold(price, turn, warm, remaining, share) == pytest.approx(cost)


def test_a_request_costs_its_share_of_all_that_come_and_a_conversation_in_proportion() -> None:
    """However long it is: three times as expensive stays three times as expensive."""
    assert Ahead(remaining=3.0).cost(Price(request=3.0), 1.0, 0.0, 0.0) == 3.0
    short = per_conversation([1.0, 3.0], typical=[10.0, 30.0])
    assert short == per_conversation([100.0, 300.0], typical=[10.0, 30.0]) == [10.0, 30.0]
    assert per_conversation([0.0, 0.0], typical=[0.0, 0.0]) == [0.0, 0.0]


# How many calls are still to come.


def remaining(*ended: tuple[str, int, int]) -> Remaining:
    found = Remaining([SMALL, LARGE])
    for name, calls, first in ended:
        found.ended(name, calls, first)
    return found


LINES = ((SMALL, 1, 1), (SMALL, 3, 1), (LARGE, 9, 1))


@pytest.mark.parametrize(
    ("ended", "after", "small", "large"),
    [
        ((), 3, 3.0, 3.0),  # before any has ended as many are expected as there were
        (LINES, 1, 1.0, 8.0),
        (LINES, 2, 0.5, 6.5),  # after 2 and 3 calls
        (LINES, 5, 3.5, 3.5),  # as of the other
        (((LARGE, 7, 6),), 4, 0.5, 0.5),  # it changed hands: each of its own calls teaches
        (((LARGE, 7, 6),), 1, 1.0, 1.0),
        (((SMALL, 10_000, 1),), 100_000, *(10_000 - (2_048 + 10_000) / 2,) * 2),
        (((SMALL, 10_000, 1),), 0, *(10_000 - 1.0,) * 2),
    ],
)
def test_what_followed_is_a_mean_over_lines_for_each_candidate(
    ended: tuple[tuple[str, int, int], ...], after: int, small: float, large: float
) -> None:
    assert remaining(*ended).after(after) == pytest.approx({SMALL: small, LARGE: large})


# What calls usually find in their caches, and how lines usually grow.

PRICE = Price(1.0, 8.0, cached_discount=0.9)
WRITES = Price(3.0, 15.0, cached_discount=2.7, written_surcharge=0.75)
PROMPT = Digest(16)


def place(characters: int = 100, attached: int = 0, **line: object) -> Place:
    found = Line("r1", "r1", PROMPT, 0.0, candidate=SMALL, **line)  # type: ignore[arg-type]
    return Place(found, 2, characters, PROMPT, ("zoo", "key"), attached=attached)


def habits() -> Habits:
    return Habits([SMALL, LARGE])


def test_before_any_call_a_request_costs_what_it_costs_without_a_cache() -> None:
    found = habits().ahead([SMALL, LARGE], {}, Line("r1", "r1", PROMPT, 0.0, requests=1), 1_000.0)
    assert found == {SMALL: Ahead(), LARGE: Ahead()}
    assert found[SMALL].cost(PRICE, 1_000.0, 10.0, 0.0) == PRICE.of(1_000.0, 10.0)
    assert habits().usual_part(SMALL) == 1.0


def test_calls_tell_what_is_warm_where_a_line_begins_and_how_many_follow() -> None:
    known, line = habits(), Line("r2", "r2", PROMPT, 0.0, requests=1)
    known.called(place(), "d1", Usage(1_000, 10, cached_tokens=250), PRICE, expected=None)
    found = known.ahead([SMALL, LARGE], {}, line, 2_000.0)
    assert (found[SMALL].warm, found[LARGE].warm) == (500.0, 0.0)
    assert known.ahead([SMALL], {SMALL: 7.0}, line, 2_000.0)[SMALL].warm == 7.0
    known.called(place(), "d1", Usage(2_000, 10, cached_tokens=500), PRICE, expected=1_000.0)
    assert (known.share_found("d1"), known.share_found("d2")) == (0.5, 1.0)
    known.ended(Line("r1", "r1", PROMPT, 0.0, requests=11, candidate=SMALL))
    assert known.ahead([SMALL], {}, line, 0.0)[SMALL].remaining == 10.0


def test_what_is_stored_is_the_part_that_was_written_of_what_was_not_cached() -> None:
    known = habits()
    used = Usage(2_000, 10, cached_tokens=1_000, written_tokens=900)
    known.called(place(), "d1", used, WRITES, expected=1_000.0)
    line = Line("r2", "r2", PROMPT, 0.0, requests=1)
    assert known.ahead([SMALL], {}, line, 0.0)[SMALL].share == 0.9
    line.stored = 0.2
    assert known.ahead([SMALL], {}, line, 0.0)[SMALL].share == 0.2, "the line's own"


def test_an_average_call_costs_a_part_in_steps() -> None:
    """So that the plan over recent prompts is not worked out anew at each call."""
    known = habits()
    for cached in (0, 1_000):
        used = Usage(1_000, 0, cached_tokens=cached)
        known.called(place(), "d1", used, PRICE, expected=None)
    assert known.usual_part(SMALL) == pytest.approx(0.55)
    assert known.usual_part(SMALL) / STEP == pytest.approx(round(known.usual_part(SMALL) / STEP))


HIDDEN, IMAGE = 3_000, 1_500
"""True of every prompt below: the tokens of its tools, and of an image; 4 characters of text are a
token."""


def ask(known: Habits, line: Line, characters: int, images: int) -> float:
    """One step of a line, whose call then shows its tokens; returns the estimate over the truth."""
    asked = replace(place(characters, images), line=line)
    tokens = HIDDEN + characters // 4 + IMAGE * images
    expected = known.tokens(line, asked) if line.prompt_tokens else tokens
    known.called(asked, "d1", Usage(tokens, 10), PRICE, expected=None)
    line.prompt_tokens, line.characters, line.attached = float(tokens), characters, images
    return expected / tokens


steps = st.lists(st.tuples(st.integers(4, 20_000), st.integers(0, 3)), min_size=2, max_size=8)


@given(st.lists(steps, min_size=2, max_size=6))
def test_what_other_lines_send_does_not_spoil_a_lines_estimate(lines: list[Any]) -> None:
    """Screenshots in one, text in another: in a whole prompt of text no ratio of images counts."""
    known = habits()
    for _ in range(3):  # an image has shown what it takes
        learnt = place().line
        for images in range(3):
            ask(known, learnt, 100 + images, images)
    for each in lines:
        line, characters, images = place().line, 400, 0
        ask(known, line, characters, images)
        for more, seen in each:
            characters, images = characters + more, images + seen
            assert ask(known, line, characters, images) == pytest.approx(1.0, abs=0.2)
        # Summed up, and cleared of its images: off by 8 % in one of a hundred, never by half.
        assert ask(known, line, 4_000, 0) == pytest.approx(1.0, abs=0.5)


def test_all_is_expected_to_be_found_until_calls_show_otherwise() -> None:
    known = habits()
    assert known.share_found("d1") == 1.0
    for expected, cached, share in ((1_000.0, 0, 0.0), (1_000.0, 2_000, 0.5), (0.0, 500, 0.5)):
        used = Usage(3_000, 1, cached_tokens=cached)
        known.called(place(), "d1", used, PRICE, expected=expected)
        assert known.share_found("d1") == share


def test_the_deployments_that_are_remembered_are_bounded() -> None:
    known = habits()
    for number in range(DEPLOYMENTS + 5):
        known.called(place(), f"d{number}", Usage(10, 1), PRICE, expected=5.0)
    assert len(known._hits) == DEPLOYMENTS
    assert (known.share_found("d0"), known.share_found(f"d{DEPLOYMENTS}")) == (1.0, 0.0)


def test_models_come_and_go_and_what_is_known_of_the_others_stays() -> None:
    known, line = habits(), Line("r1", "r1", PROMPT, 0.0)
    before = known.ahead([LARGE], {}, line, 10.0)
    known.meet([LARGE, "new"])
    assert known.ahead([LARGE], {}, line, 10.0) == before
    assert set(known.ahead([LARGE, "new"], {}, line, 10.0)) == {LARGE, "new"}
    with pytest.raises(KeyError):
        known.usual_part(SMALL)
