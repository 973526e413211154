"""How far above alpha to aim, so that the certificate's lower bound reaches alpha and stays there.

The certificate (docs/certificate.md) proves a share by the labels that there are: its lower bound
lies below the share that they show by about

    sqrt(v (2 log(1 / miss) + log(answered) / 2 + FIT)) / answered,

as a mixture of bets does, where v is the variance of what the labels leave open: nothing where
every request has one. So much surplus must be there, in answered requests, whenever somebody looks.
It grows with the root of their number; hence the aim is raised by what it grows by from one
answered request to the next, which falls to nothing.
"""

from math import log, sqrt

FIT = 1.5
"""Makes the bound follow the certificate's to a tenth, from 100 labels to 200,000."""
STEEPEST = 0.4
"""Share of what lies above alpha by which the aim is raised at first, when nothing is known."""
RESERVE = 14.0
"""Surplus that is held where every request has a label, in standard deviations of one label: what
the sum wanders by around what is aimed at, and the last request counts as much as the others."""
FILLING = 0.04
"""Share of what lies above alpha by which the aim is raised to fill the reserve. Slowly: where
alpha is near to what the best model holds, a higher aim calls an expensive one for little."""


def surplus(alpha: float, answered: int, share: float, confidence: float) -> float:
    """Give the surplus to hold after so many ``answered`` requests, which are that ``share`` of
    all: in answered requests."""
    above, variance = 1.0 - alpha, alpha * (1.0 - alpha)
    reserve = min(RESERVE * sqrt(variance), FILLING * above * answered)
    left_open = answered * variance * (1.0 - share)
    bound = sqrt(left_open * (-2.0 * log(1.0 - confidence) + log(max(answered, 1)) / 2.0 + FIT))
    return reserve + min(bound, STEEPEST * above * answered)


def raised(alpha: float, answered: int, requests: int, confidence: float) -> float:
    """Give what comes on top of alpha for the next request, where that many are ``answered`` of all
    ``requests``."""
    share = min(answered / max(requests, 1), 1.0)
    after = surplus(alpha, answered + 1, share, confidence)
    return after - surplus(alpha, answered, share, confidence)
