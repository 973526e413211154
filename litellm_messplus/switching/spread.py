"""Evidence that is spread over keys: what all of them show, and what is left without each one.

One client alone must not move everybody's zoo: by a wrong parameter, or on purpose. A test of the
way back has to hold for the requests of all keys, and again for those of all but one, whichever key
is left out. So what a key sends never returns a zoo unless the other keys' requests do so too: with
or without it, a false return is a false alarm of a test that is right at all looks.

The price is time. With K keys that send as much each, K - 1 of them must show it: of two keys each
one on its own, of twelve eleven. A key that makes most of the requests counts in full, for the
others are too few to hold it against: so does the only one.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.certificate.sequence import Vector

MOST = 0.75
"""The share of the requests from which on a key counts in full."""

Bits = NDArray[np.bool_]


class Spread:
    """Requests by their keys: ``places`` is the key of each, as a number."""

    def __init__(self, keys: Sequence[str | None]) -> None:
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        self._places = np.array([numbers[key] for key in keys], dtype=np.intp)
        requests = np.bincount(self._places, minlength=len(numbers))
        self._is_held = requests < MOST * len(keys)

    def sums(self, values: Vector, chosen: Bits) -> Vector:
        """Add up the chosen requests: first those of all keys, then those of all but one, for each
        key that does not count in full."""
        places, values = self._places[chosen], values[chosen]
        own = np.bincount(places, weights=values, minlength=len(self._is_held))
        total = values.sum()
        return np.concatenate(([total], total - own[self._is_held]))

    def without_each(self, chosen: Bits) -> Iterator[Bits]:
        """Yield the chosen requests as ``sums`` adds them up; keys without any make no
        difference."""
        yield chosen
        found = np.unique(self._places[chosen])
        for place in found[self._is_held[found]]:
            yield chosen & (self._places != place)

    def shown(self, bad: Bits, chosen: Bits) -> str:
        """Write how many keys of the chosen requests have a bad one."""
        having, all_keys = (len(np.unique(self._places[each])) for each in (chosen & bad, chosen))
        return f"keys: {having} of {all_keys}"
