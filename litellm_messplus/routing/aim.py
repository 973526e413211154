"""What the queue aims at, and how much a label weighs, where the labels are not the whole truth.

With a `confidence` the aim lies so far above alpha that the certificate's lower bound reaches alpha
and stays there. The certificate (docs/certificate.md) proves a share by the labels that there are:
its lower bound lies below the share that they show by about

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


def aim(
    alpha: float, *, margin: float, answered: int, label_noise: float, raised: float = 0.0
) -> float:
    """Compute the share of satisfied labels to hold so that that of satisfied requests is alpha.

    ``margin`` standard errors of the rate over the ``answered`` requests come on top: large while
    little is known, gone when much is; ``raised`` is what a promise with a `confidence` adds.
    Where a label is wrong with probability ``label_noise``,
    the truth alpha shows as noise + (1 - 2 noise) alpha.
    """
    standard_error = sqrt(alpha * (1.0 - alpha) / max(answered, 1))
    wanted = min(alpha + margin * standard_error + raised, (1.0 + alpha) / 2.0)
    return label_noise + (1.0 - 2.0 * label_noise) * wanted


def label_weight(satisfaction: float, response_bias: float) -> float:
    """Weigh a label where unsatisfied users answer ``response_bias`` times as often.

    A satisfied label then stands for that many times as many requests as an unsatisfied one; the
    two weigh 1 on average.
    """
    return 2.0 * (1.0 + (response_bias - 1.0) * satisfaction) / (1.0 + response_bias)
