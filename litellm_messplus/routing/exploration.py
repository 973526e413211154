"""When to explore (paper, Section 2.3 and Algorithm 1)."""

from hashlib import blake2b


def exploration_probability(t: int, c: float) -> float:
    """p_t = min(1, c / t^(1/4)) for the t-th request, counted from 1."""
    return float(min(1.0, c / t**0.25))


def draw(seed: int, stream: str, t: int) -> float:
    """A uniform number in [0, 1) that depends on its arguments alone.

    A counter in place of a generator's hidden state: after a restart, in a second worker and in a
    replay, request ``t`` of the service level named by ``stream`` gets the same number.
    """
    digest = blake2b(f"{seed}\0{stream}\0{t}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / float(1 << 53)
