"""Waiting for labels that come after the answer."""

from collections.abc import Callable, Iterable

from litellm_messplus.demo.command import wait_for_labels


def counted(counts: Iterable[int]) -> tuple[Callable[[], int], list[int]]:
    """How many are labelled at each look, the last for ever; and what was told."""
    coming, told = iter(counts), list[int]()

    def labelled() -> int:
        told.append(next(coming, told[-1] if told else 0))
        return told[-1]

    return labelled, told


def test_where_all_are_labelled_nobody_waits() -> None:
    labelled, told = counted([2])

    wait_for_labels(labelled, 2)

    assert told == [2]


def test_labels_that_come_later_are_waited_for() -> None:
    labelled, told = counted([1, 1, 2, 3])

    wait_for_labels(labelled, 3, look_seconds=0.0)

    assert told == [1, 1, 2, 3]


def test_labels_that_never_come_are_not_waited_for_forever() -> None:
    labelled, told = counted([0, 1])

    wait_for_labels(labelled, 2, look_seconds=0.0, quiet_seconds=0.05)

    assert told[-1] == 1


def test_even_labels_that_go_on_coming_are_not_waited_for_forever() -> None:
    labelled, told = counted(range(1_000))

    wait_for_labels(labelled, 1_000, look_seconds=0.0, longest_seconds=0.0)

    assert told[-1] < 999
