"""What calls usually find in their caches, and how lines usually grow."""

import pytest

from litellm_messplus.conversations.caches import DEPLOYMENTS, STEP, Ahead, Habits
from litellm_messplus.conversations.digests import Digest
from litellm_messplus.conversations.line import Joined, Line, Place, Told, Warm
from litellm_messplus.conversations.lines import WARM, Lines
from litellm_messplus.costs.price import Price, Usage
from tests.support.builders import LARGE, SMALL

PRICE = Price(1.0, 8.0, cached_discount=0.9)
WRITES = Price(3.0, 15.0, cached_discount=2.7, written_surcharge=0.75)
PROMPT = Digest(16)


def place(characters: int = 100, **line: object) -> Place:
    found = Line("r1", "r1", PROMPT, 0.0, candidate=SMALL, **line)  # type: ignore[arg-type]
    return Place(found, Joined.PREFIX, 2, 0, characters, PROMPT, ("zoo", "key"))


def habits() -> Habits:
    return Habits([SMALL, LARGE])


def test_before_any_call_a_request_costs_what_it_costs_without_a_cache() -> None:
    found = habits().ahead([SMALL, LARGE], {}, Line("r1", "r1", PROMPT, 0.0, requests=1), 1_000.0)
    assert found == {SMALL: Ahead(), LARGE: Ahead()}
    assert found[SMALL].cost(PRICE, 1_000.0, 10.0, 0.0) == PRICE.of(1_000.0, 10.0)
    assert habits().usual_part(SMALL) == 1.0


def test_what_all_prompts_begin_with_is_warm_where_a_line_begins() -> None:
    known = habits()
    known.called(place(), "d1", Usage(1_000, 10, cached_tokens=250), PRICE, expected=None)
    found = known.ahead([SMALL, LARGE], {}, Line("r2", "r2", PROMPT, 0.0, requests=1), 2_000.0)
    assert (found[SMALL].warm, found[LARGE].warm) == (500.0, 0.0)


def test_a_deployment_that_finds_half_is_expected_to_find_half() -> None:
    known = habits()
    known.called(place(), "d1", Usage(2_000, 10, cached_tokens=500), PRICE, expected=1_000.0)
    assert known.share_found("d1") == 0.5
    assert known.share_found("d2") == 1.0


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


def test_tokens_since_the_last_prompt_are_told_by_what_lines_grew_by() -> None:
    """A whole prompt has tokens that no words tell of: the descriptions of its tools."""
    known = habits()
    assert known.tokens_since(40) == 10.0
    grown = place(300, prompt_tokens=1_000.0)
    grown.line.characters = 100
    known.called(grown, "d1", Usage(1_100, 10), PRICE, expected=None)
    assert known.tokens_since(40) == pytest.approx(20.0)


def test_lines_that_ended_tell_how_many_calls_follow() -> None:
    known = habits()
    known.ended(Line("r1", "r1", PROMPT, 0.0, requests=11, candidate=SMALL))
    found = known.ahead([SMALL], {}, Line("r2", "r2", PROMPT, 0.0, requests=1), 0.0)
    assert found[SMALL].remaining == 10.0


def test_the_deployments_that_are_remembered_are_bounded() -> None:
    known = habits()
    for number in range(DEPLOYMENTS + 5):
        known.called(place(), f"d{number}", Usage(10, 1), PRICE, expected=5.0)
    assert len(known) == DEPLOYMENTS
    assert (known.share_found("d0"), known.share_found(f"d{DEPLOYMENTS}")) == (1.0, 0.0)


def told(turn: int, prompt: bytes = b"p" * 16, **changed: object) -> Told:
    warm = Warm(900.0, 400, 0.0)
    given = {"deployment": "d1", "warm": warm, **changed}
    return Told("r1", "r1", prompt, turn, SMALL, characters=400, **given)  # type: ignore[arg-type]


def test_a_line_that_the_log_tells_of_is_known() -> None:
    lines = Lines(b"key")
    lines.learn(told(3), 1.0)
    (line,) = lines._lines.values()
    assert (line.requests, line.candidate, line.deployment) == (3, SMALL, "d1")
    assert line.warm["d1"].tokens == 900.0
    lines.learn(told(2, deployment="d2"), 2.0)
    assert (line.requests, line.deployment) == (3, "d1"), "it is further here"


def test_the_caches_that_are_remembered_of_a_line_are_bounded() -> None:
    lines = Lines(b"key")
    for number in range(1, WARM + 4):
        lines.learn(told(number, deployment=f"d{number}"), 1.0)
    (line,) = lines._lines.values()
    assert len(line.warm) == WARM
    assert "d1" not in line.warm


def test_models_come_and_go_and_what_is_known_of_the_others_stays() -> None:
    habits, line = Habits(["small", "large"]), Line("r1", "r1", PROMPT, 0.0)
    before = habits.ahead(["large"], {}, line, 10.0)

    habits.meet(["large", "new"])

    assert habits.ahead(["large"], {}, line, 10.0) == before
    assert set(habits.ahead(["large", "new"], {}, line, 10.0)) == {"large", "new"}
    with pytest.raises(KeyError):
        habits.usual_part("small")
