"""How far above alpha to aim, so that the certificate's lower bound reaches alpha and stays there.

The certificate (docs/certificate.md) proves a share by the labels that there are: its lower bound
lies below the share that they show by about

    sqrt((v + PRIOR) (2 log(1 / miss) + log((v + PRIOR) / PRIOR))) / answered,

the boundary of a mixture of normal laws (H. Robbins, "Statistical methods related to the law of the
iterated logarithm", Annals of Mathematical Statistics 41, 1970), where v is the variance of what
the labels leave open: nothing where every request has one. So much surplus must be there, in
answered requests, whenever somebody looks. It grows with the root of their number; hence the aim is
raised by what it grows by from one answered request to the next, which falls to nothing.
"""

from math import log, sqrt

PRIOR = 6.0
"""Variance around which the boundary is narrowest; chosen so that it follows the certificate's to a
tenth from 50 labels to 500,000."""
RESERVE = 12.0
"""Surplus that is held where every request has a label, in standard deviations of one label: what
the sum wanders by around what is aimed at, and the last request counts as much as the others."""
FILLING = 0.04
"""By which share of what lies above alpha the aim is raised to fill the reserve: where alpha is
near to what the best model holds, a higher aim calls the most expensive one for nothing."""


def surplus(alpha: float, answered: int, share: float, confidence: float) -> float:
    """Give the surplus to hold after so many ``answered`` requests, which are that ``share`` of
    all: in answered requests."""
    variance = alpha * (1.0 - alpha)
    reserve = min(RESERVE * sqrt(variance), FILLING * (1.0 - alpha) * answered)
    open_variance = answered * variance * (1.0 - share)
    return reserve + _boundary(open_variance, confidence) - _boundary(0.0, confidence)


def raised(alpha: float, answered: int, requests: int, confidence: float) -> float:
    """Give what comes on top of alpha for the next request, where that many are ``answered`` of all
    ``requests``."""
    share = min(answered / max(requests, 1), 1.0)
    after = surplus(alpha, answered + 1, share, confidence)
    return after - surplus(alpha, answered, share, confidence)


def _boundary(variance: float, confidence: float) -> float:
    mixed = variance + PRIOR
    return sqrt(mixed * (-2.0 * log(1.0 - confidence) + log(mixed / PRIOR)))
