"""Which requests are graded, and in which order their answers are shown.

Both hang on ids alone, so whichever worker sees a request comes to the same, and neither the
client nor the answers have a say in it.
"""

from collections.abc import Sequence
from hashlib import blake2b

from litellm_messplus.labels.judge.gathering import ShownAnswer


def is_sampled(seed: int, request_id: str, rate: float) -> bool:
    """Whether a request belongs to a uniform sample of the share ``rate``; it belongs to every
    larger sample too."""
    return _uniform(seed, "sample", request_id) < rate


def shuffled(seed: int, answers: Sequence[ShownAnswer]) -> tuple[ShownAnswer, ...]:
    """The answers to one request in an order that says nothing of where they come from."""
    return tuple(sorted(answers, key=lambda shown: _uniform(seed, "order", shown.call_id)))


def _uniform(seed: int, purpose: str, identity: str) -> float:
    """A number in [0, 1) that depends on the arguments alone."""
    digest = blake2b(f"{seed}\0{purpose}\0{identity}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / float(1 << 53)
