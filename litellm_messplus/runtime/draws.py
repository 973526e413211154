"""Random numbers without a hidden state: each depends on what it is for, and on nothing else.

After a restart, in a second worker and in a replay the same request gets the same number.
"""

from hashlib import blake2b


def uniform(seed: int, stream: str, place: int | str) -> float:
    """Return a number in [0, 1): that of ``place`` in the stream of draws that ``stream`` names."""
    digest = blake2b(f"{seed}\0{stream}\0{place}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / float(1 << 53)
