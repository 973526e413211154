"""Where the labels of a demo come from: the modes of `messplus demo --labels`."""

from dataclasses import dataclass

from litellm_messplus.demo.crowd import SimulatedCrowd

ALLOWED = "all, checks, judge, judge:largest, or feedback:SHARE with a share above 0 and up to 1"
"""What `--labels` takes."""


@dataclass(frozen=True, slots=True)
class Labelling:
    """What a demo's client does for the labels, and ``zoo``, that of `examples/tiny_zoo` whose
    settings do the rest.

    With ``sends_reference`` a request carries the right answer in its metadata. ``crowd`` are the
    users whose feedback is posted; None posts none. With ``labels_explorations`` the answers that
    no user saw get feedback too.
    """

    mode: str
    zoo: str
    crowd: SimulatedCrowd | None = None
    sends_reference: bool = False
    labels_explorations: bool = False

    @classmethod
    def parse(cls, given: str, seed: int) -> "Labelling":
        """Of a mode as given. Raises ValueError for anything but what is allowed."""
        match given.partition(":"):
            case "all", "", _:
                everybody = SimulatedCrowd(1.0)
                return cls(given, "tiny-zoo", everybody, labels_explorations=True)
            case "checks", "", _:
                return cls(given, "tiny-zoo-checked", sends_reference=True)
            case "judge", "", _:
                return cls(given, "tiny-zoo-judged")
            case "judge", _, "largest":
                return cls(given, "tiny-zoo-judged-by-largest")
            case "feedback", _, share:
                return cls(given, "tiny-zoo-crowd", SimulatedCrowd(_share(share), seed))
        raise ValueError(f"allowed: {ALLOWED}")


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share <= 1.0:
        raise ValueError(f"allowed: {ALLOWED}")
    return share
