"""Two questions about five cups that are swapped, each answered by one letter or digit.

``ball: c ab ce de`` puts a ball under cup c, swaps the cups of each pair, and asks where the ball
is: each swap depends on the one before. ``count: c ab ce de`` asks how many of the pairs cup c is
in: one look is enough.

Training and evaluation share no prompt: which belong to the held-out fifth is decided as in the
tiny zoo, by the prompt's digest.
"""

import random
from collections.abc import Iterator
from itertools import accumulate, pairwise

from examples.tiny_zoo.tasks import Task, is_held_out

FAMILIES = ("ball", "count")
CUPS = "abcde"
DIFFICULTIES = range(1, 9)
"""How many swaps there are."""


def _swapped(cup: str, pair: str) -> str:
    """Return where a ball is after a swap."""
    return pair.replace(cup, "") if cup in pair else cup


def steps(prompt: str) -> str:
    """Write what happens at each swap; the last character is the answer.

    ``ball``: where the ball was and is, such as ``cc,ce,ed``. ``count``: the cup and its count so
    far, such as ``c0,c1,c1``.
    """
    family, cup, *pairs = prompt.split()
    if family == "ball:":
        found = [was + now for was, now in pairwise(accumulate(pairs, _swapped, initial=cup))]
    else:
        found = [f"{cup}{count}" for count in accumulate(pair.count(cup) for pair in pairs)]
    return ",".join(found)


def generate(count: int, seed: int) -> Iterator[Task]:
    """Yield ``count`` held-out tasks; equal seeds give equal tasks."""
    return _draw(count, seed, held_out=True)


def generate_training(count: int, seed: int) -> Iterator[Task]:
    """Yield ``count`` tasks, none of which :func:`generate` yields."""
    return _draw(count, seed, held_out=False)


def _draw(count: int, seed: int, held_out: bool) -> Iterator[Task]:
    source, produced = random.Random(seed), 0
    while produced < count:
        family, difficulty = source.choice(FAMILIES), source.choice(DIFFICULTIES)
        pairs = ["".join(source.sample(CUPS, 2)) for _ in range(difficulty)]
        prompt = f"{family}: {source.choice(CUPS)} {' '.join(pairs)}"
        if is_held_out(prompt) is held_out:
            produced += 1
            yield Task(family, difficulty, prompt, steps(prompt)[-1])
