"""From recordings to streams: each on its own, or several as one."""

from collections.abc import Sequence
from enum import StrEnum

from litellm_messplus.replay.errors import ReplayError
from litellm_messplus.replay.recording import Recording, concatenate


class Joining(StrEnum):
    """What several recordings become."""

    SEPARATE = "separate"
    CONCATENATED = "concatenated"
    MIXED = "mixed"


def streams(recordings: Sequence[Recording], joining: Joining) -> list[list[Recording]]:
    """The parts of each stream, which follow one another."""
    match joining:
        case Joining.SEPARATE:
            return [[recording] for recording in recordings]
        case Joining.CONCATENATED:
            return [list(recordings)]
        case Joining.MIXED:
            return [[concatenate(recordings)]]


def one_each(alphas: Sequence[float], count: int) -> Sequence[float]:
    """An alpha for each of ``count`` streams, of one for all or one for each.

    Raises ReplayError for any other number of them.
    """
    if len(alphas) == 1:
        return [alphas[0]] * count
    if len(alphas) != count:
        raise ReplayError(f"--alpha: given {len(alphas)}; allowed: 1, or one for each of {count}")
    return alphas
