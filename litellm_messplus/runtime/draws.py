"""Random numbers without hidden state: each depends only on its seed, stream and place.

The same request gets the same number after a restart, in a second worker and in a replay.
"""

from hashlib import blake2b


def uniform(seed: int, stream: str, place: int | str) -> float:
    """Return the number in [0, 1) of ``place`` in the stream of draws that ``stream`` names."""
    digest = blake2b(f"{seed}\0{stream}\0{place}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / float(1 << 53)
