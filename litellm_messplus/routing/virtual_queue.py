"""The virtual queue: the accumulated shortfall of satisfaction against alpha (paper, Eq. 2)."""


def after(queue: float, shortfall: float) -> float:
    """Q(t+1) = max(0, Q(t) + alpha - s): a satisfied request pays 1 - alpha of the debt back.

    ``shortfall`` is alpha - s, times what the label counts; where a second verdict replaces the
    first, it is the difference of theirs.
    """
    return max(0.0, queue + shortfall)
