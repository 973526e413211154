"""Questions about a shop that an agent answers with two to four calls of its tools.

A question such as ``cost of 3 figs and 4 pears?`` has one right answer, by the prices of a shop
that is drawn for it alone: no one can know them without asking. Each kind of goods takes one call
for its price, and the sum takes one more.

Training and evaluation share no question: which belong to the held-out fifth is decided as in the
tiny zoo, by the question's digest.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from examples.tiny_zoo.tasks import is_held_out

GOODS = ("beans", "dates", "figs", "kiwis", "leeks", "limes", "nuts", "pears", "plums", "sprouts")
KINDS = range(1, 4)
"""How many kinds of goods a question may name: its difficulty."""
_PRICES = range(2, 60)
_QUANTITIES = range(2, 10)


@dataclass(frozen=True)
class Task:
    """One question, the ``prices`` of its shop, and the one right ``answer``.

    ``wanted`` are the quantities by goods, in the question's order; ``paid`` is the money of which
    the change is asked, None where the question asks for the cost.
    """

    wanted: Mapping[str, int]
    paid: int | None
    prices: Mapping[str, int]

    @property
    def question(self) -> str:
        """The words of the user."""
        listed = " and ".join(f"{quantity} {goods}" for goods, quantity in self.wanted.items())
        amount = "cost of" if self.paid is None else f"change from {self.paid} for"
        return f"{amount} {listed}?"

    @property
    def expression(self) -> str:
        """The sum that is to be calculated."""
        products = [f"{quantity}*{self.prices[goods]}" for goods, quantity in self.wanted.items()]
        return "+".join(products) if self.paid is None else "-".join([str(self.paid), *products])

    @property
    def answer(self) -> str:
        """The one right answer."""
        cost = _cost(self.wanted, self.prices)
        return str(cost if self.paid is None else self.paid - cost)


def _cost(wanted: Mapping[str, int], prices: Mapping[str, int]) -> int:
    return sum(quantity * prices[goods] for goods, quantity in wanted.items())


def is_solved(task: Task, answer: str) -> bool:
    """Tell whether the answer, stripped of surrounding whitespace, is exactly the right one."""
    return answer.strip() == task.answer


def generate(count: int, seed: int) -> Iterator[Task]:
    """Yield ``count`` held-out tasks; equal seeds give equal tasks."""
    return _draw(count, seed, KINDS[-1], held_out=True)


def generate_training(count: int, seed: int, hardest: int = KINDS[-1]) -> Iterator[Task]:
    """Yield ``count`` tasks with up to ``hardest`` kinds of goods, whose questions
    :func:`generate` never yields."""
    return _draw(count, seed, hardest, held_out=False)


def _draw(count: int, seed: int, hardest: int, held_out: bool) -> Iterator[Task]:
    source, produced = random.Random(seed), 0
    while produced < count:
        task = _task(source, source.randint(KINDS[0], hardest))
        if is_held_out(task.question) is held_out:
            produced += 1
            yield task


def _task(source: random.Random, kinds: int) -> Task:
    prices = {goods: source.choice(_PRICES) for goods in GOODS}
    wanted = {goods: source.choice(_QUANTITIES) for goods in source.sample(GOODS, kinds)}
    if source.random() < 0.5:
        return Task(wanted, None, prices)
    # The next hundred above the cost: no one pays less than it costs.
    return Task(wanted, (_cost(wanted, prices) // 100 + 1) * 100, prices)
