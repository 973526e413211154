"""What the tiny zoo's server keeps of earlier prompts: found, never shared, and never too much."""

from transformers import DynamicCache

from examples.tiny_zoo.prefixes import Prefixes


def test_a_prompt_that_goes_on_finds_the_longest_beginning() -> None:
    prefixes, short, long = Prefixes(), DynamicCache(), DynamicCache()
    prefixes.keep([1, 2], short)
    prefixes.keep([1, 2, 3], long)

    assert prefixes.take([1, 2, 3, 4]) == (3, long)
    assert prefixes.take([1, 2, 3, 4]) == (2, short)
    assert prefixes.take([1, 2, 3, 4]) == (0, None)


def test_another_prompt_finds_nothing_and_one_token_is_always_left() -> None:
    prefixes = Prefixes()
    prefixes.keep([1, 2], DynamicCache())

    assert prefixes.take([1, 2]) == (0, None)
    assert prefixes.take([2, 1, 2]) == (0, None)
    assert len(prefixes) == 1


def test_the_oldest_goes_where_there_are_too_many() -> None:
    prefixes = Prefixes(kept=2)
    for first in (1, 2, 1, 3):
        prefixes.keep([first], DynamicCache())

    assert len(prefixes) == 2
    assert prefixes.take([2, 0]) == (0, None)
    assert prefixes.take([1, 0])[0] == 1
