"""Short text tasks of graded difficulty whose answers a program can check.

Every task is a line such as ``sort: 52 97 11`` with one right answer (``11 52 97``).
There are five families, each in difficulties 1 (easiest) to 6; :func:`generate` draws family and
difficulty uniformly.

Training and evaluation never share a prompt: a prompt belongs to the held-out fifth when the
first byte of its SHA-256 digest is divisible by five, whatever the seed that drew it.
:func:`generate` yields only held-out prompts and :func:`generate_training` only the others.  Even
the smallest group (one family at one difficulty) has 810 prompts, so the rule needs no
exception.
"""

import hashlib
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from string import ascii_lowercase

DIFFICULTIES = range(1, 7)
_HELD_OUT_ONE_IN = 5
_COUNTED_LETTERS = "abcd"
_LARGEST_SHIFT = 5


@dataclass(frozen=True)
class Task:
    """One task: ``prompt`` is what a model is asked, ``answer`` the only satisfactory reply."""

    family: str
    difficulty: int
    prompt: str
    answer: str


def _number(source: random.Random, digit_count: int) -> int:
    return source.randrange(10 ** (digit_count - 1), 10**digit_count)


def _letters(source: random.Random, length: int, alphabet: str = ascii_lowercase) -> str:
    return "".join(source.choices(alphabet, k=length))


def _add(source: random.Random, difficulty: int) -> str:
    """Add two numbers with ``difficulty + 2`` digits in all."""
    digit_count = difficulty + 2
    first = _number(source, (digit_count + 1) // 2)
    return f"add: {first} + {_number(source, digit_count // 2)}"


def _count(source: random.Random, difficulty: int) -> str:
    """Count one letter in a string of ``3 * difficulty + 2`` letters."""
    letter = source.choice(_COUNTED_LETTERS)
    return f"count {letter}: {_letters(source, 3 * difficulty + 2, _COUNTED_LETTERS)}"


def _reverse(source: random.Random, difficulty: int) -> str:
    """Reverse a string of ``4 * difficulty`` letters."""
    return f"reverse: {_letters(source, 4 * difficulty)}"


def _shift(source: random.Random, difficulty: int) -> str:
    """Move ``2 * difficulty`` letters one to five places on in the alphabet (z wraps to a)."""
    places = source.randint(1, _LARGEST_SHIFT)
    return f"shift {places}: {_letters(source, 2 * difficulty)}"


def _sort(source: random.Random, difficulty: int) -> str:
    """Sort ``difficulty + 1`` two-digit numbers in ascending order."""
    return f"sort: {' '.join(str(_number(source, 2)) for _ in range(difficulty + 1))}"


_MAKERS: dict[str, Callable[[random.Random, int], str]] = {
    "add": _add,
    "count": _count,
    "reverse": _reverse,
    "shift": _shift,
    "sort": _sort,
}
FAMILIES = tuple(_MAKERS)


def _moved(letter: str, places: int) -> str:
    return ascii_lowercase[(ascii_lowercase.index(letter) + places) % 26]


def solve(prompt: str) -> str:
    """Return the one satisfactory reply to a task's prompt.

    Raises ValueError for what is no task.
    """
    match re.split(r"[ :+]+", prompt):
        case "add", first, second:
            return str(int(first) + int(second))
        case "count", letter, text:
            return str(text.count(letter))
        case "reverse", text:
            return text[::-1]
        case "shift", places, text:
            return "".join(_moved(letter, int(places)) for letter in text)
        case "sort", *values:
            return " ".join(sorted(values, key=int))
    raise ValueError(f"no task: {prompt!r}")


def is_held_out(prompt: str) -> bool:
    """Tell whether ``prompt`` is reserved for evaluation and thus never trained on."""
    return hashlib.sha256(prompt.encode()).digest()[0] % _HELD_OUT_ONE_IN == 0


def _draw(count: int, seed: int, hardest: int, held_out: bool) -> Iterator[Task]:
    source = random.Random(seed)
    produced = 0
    while produced < count:
        family = source.choice(FAMILIES)
        difficulty = source.randint(DIFFICULTIES[0], hardest)
        prompt = _MAKERS[family](source, difficulty)
        if is_held_out(prompt) is held_out:
            produced += 1
            yield Task(family, difficulty, prompt, solve(prompt))


def generate(count: int, seed: int) -> Iterator[Task]:
    """Yield ``count`` held-out tasks; equal seeds give equal tasks, and prompts may repeat."""
    return _draw(count, seed, DIFFICULTIES[-1], held_out=True)


def generate_training(count: int, seed: int, hardest: int = DIFFICULTIES[-1]) -> Iterator[Task]:
    """Yield ``count`` tasks up to difficulty ``hardest``, none of which :func:`generate` yields."""
    return _draw(count, seed, hardest, held_out=False)


def is_satisfactory(task: Task, reply: str) -> bool:
    """Tell whether ``reply``, stripped of surrounding whitespace, is exactly the task's answer."""
    return reply.strip() == task.answer
