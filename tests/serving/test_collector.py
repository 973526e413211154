"""The collector's rounds are kept away from requests, unless the operator has set them."""

import gc
from collections.abc import Iterator

import pytest

from litellm_messplus.serving import startup


@pytest.fixture(autouse=True)
def as_python_starts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    thresholds = gc.get_threshold()
    monkeypatch.delenv(startup.OPERATORS, raising=False)
    gc.set_threshold(700, 10, 10)
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_what_is_loaded_is_in_no_round() -> None:
    loaded = len(gc.get_objects())
    startup.freeze_startup_objects()
    assert len(gc.get_objects()) < loaded / 100


def test_objects_that_live_as_long_as_a_request_start_no_round() -> None:
    startup.freeze_startup_objects()
    before = gc.get_stats()[0]["collections"]
    in_flight = [[number] for number in range(startup.YOUNG // 2)]
    assert gc.get_stats()[0]["collections"] == before
    assert len(in_flight) > 0


def test_cycles_that_nobody_holds_are_still_collected() -> None:
    startup.freeze_startup_objects()
    before = gc.get_stats()[0]["collected"]
    for _ in range(2 * startup.YOUNG):
        cycle: list[object] = []
        cycle.append(cycle)
    assert gc.get_stats()[0]["collected"] > before


def test_the_operators_thresholds_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(startup.OPERATORS, "1000,50,50")
    gc.set_threshold(1000, 50, 50)
    startup.freeze_startup_objects()
    assert gc.get_threshold() == (1000, 50, 50)
