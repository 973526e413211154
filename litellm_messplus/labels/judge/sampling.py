"""Which requests are graded, and in which order their answers are shown.

Both hang on ids alone, so whichever worker sees a request comes to the same, and neither the
client nor the answers have a say in it.
"""

from collections.abc import Sequence

from litellm_messplus.draws import uniform
from litellm_messplus.labels.judge.gathering import ShownAnswer


def is_sampled(seed: int, request_id: str, rate: float) -> bool:
    """Whether a request belongs to a uniform sample of the share ``rate``; it belongs to every
    larger sample too."""
    return uniform(seed, "sample", request_id) < rate


def shuffled(seed: int, answers: Sequence[ShownAnswer]) -> tuple[ShownAnswer, ...]:
    """The answers to one request in an order that says nothing of where they come from."""
    return tuple(sorted(answers, key=lambda shown: uniform(seed, "order", shown.call_id)))
