"""Policy `paper` learns from an exploration's labels together, or when it has waited enough."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from litellm_messplus.state import snapshot
from litellm_messplus.state.entries import Entry
from litellm_messplus.state.zoo_state import ZooState
from tests.support.builders import (
    LARGE,
    SMALL,
    build_state,
    build_zoo,
    decided,
    example,
    labelled,
    pair,
    paper_of,
)

WAIT = 600.0
PAPER = build_zoo(policy="paper", exploration_wait_seconds=WAIT)
NAMES = (LARGE, SMALL, "medium")


def fold(*entries: Entry) -> ZooState:
    state = build_state(PAPER)
    for entry in entries:
        state.apply(entry)
    return state


def weights(state: ZooState) -> dict[str, bytes]:
    heads = paper_of(state).heads
    return {name: array.tobytes() for name, array in heads.arrays().items()}


def verdicts(*values: float, request_id: str = "r1") -> Iterator[Entry]:
    """On the calls of an exploration, the served one first."""
    for number, (name, value) in enumerate(zip(NAMES, values, strict=False)):
        yield labelled(
            value,
            is_served=number == 0,
            request_id=request_id,
            call_id=f"{request_id}.{number}",
            example=example(name, request_id=request_id, features=pair(1.0, 0.5)),
        )


@given(st.permutations([0, 1, 2]))
def test_nothing_is_learned_before_the_last_label_in_whichever_order(order: list[int]) -> None:
    labels = list(verdicts(1.0, 0.0, 1.0))
    first, second, last = (labels[place] for place in order)
    assert weights(fold(decided(calls=3), first, second)) == weights(fold())
    whole = weights(fold(decided(calls=3), first, second, last))
    assert whole == weights(fold(decided(calls=3), *labels)) != weights(fold())


def test_a_second_verdict_while_it_waits_takes_the_place_of_the_first() -> None:
    wrong, *others = verdicts(0.0, 0.0, 1.0)
    right = labelled(1.0, previous=0.0, call_id="r1.0", example=example(features=pair(1.0, 0.5)))
    revised = fold(decided(calls=3), wrong, right, *others)
    assert weights(revised) == weights(fold(decided(calls=3), *verdicts(1.0, 0.0, 1.0)))


def test_when_the_time_is_up_it_learns_from_what_it_has() -> None:
    explored, some = decided(calls=3, at=1000.0), list(verdicts(1.0, 0.0))
    in_time = fold(explored, *some, decided(request_id="r2", at=1000.0 + WAIT))
    too_late = fold(explored, *some, decided(request_id="r2", at=1001.0 + WAIT))
    assert weights(in_time) == weights(fold())
    assert weights(too_late) == weights(fold(decided(calls=2), *some))


def test_a_label_that_comes_after_that_teaches_alone() -> None:
    """And an exploration without any is let go."""
    *some, late = verdicts(1.0, 0.0, 1.0)
    waited = fold(decided(calls=3), *some, decided(request_id="r2", at=WAIT + 1), late)
    assert weights(waited) == weights(fold(decided(calls=2), *some, late))
    state = fold(decided(calls=3), decided(request_id="r2", at=WAIT + 1))
    assert "r1" not in paper_of(state).waiting
    assert weights(state) == weights(fold())


def test_what_waits_survives_a_snapshot() -> None:
    *some, last = verdicts(1.0, 0.3, 1.0)
    whole = fold(decided(calls=3), *some)
    loaded = snapshot.load(snapshot.dump(whole), build_state(PAPER))
    assert snapshot.dump(loaded) == snapshot.dump(whole)
    for state in (whole, loaded):
        state.apply(last)
    assert weights(loaded) == weights(whole) != weights(fold())
