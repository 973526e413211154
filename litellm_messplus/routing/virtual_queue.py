"""The virtual queue: the accumulated shortfall of satisfaction against alpha (paper, Eq. 2)."""


def after_answer(queue: float, alpha: float, satisfaction: float) -> float:
    """Q(t+1) = max(0, Q(t) + alpha - s): a satisfied request pays 1 - alpha of the debt back."""
    return max(0.0, queue + alpha - satisfaction)


def after_revision(queue: float, previous: float, satisfaction: float) -> float:
    """The queue when a second verdict on a request replaces the first.

    Only the difference between the verdicts moves it, so that the request counts once.
    """
    return max(0.0, queue + previous - satisfaction)
