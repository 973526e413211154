"""What the queue aims at, and how much a label weighs, where the labels are not the whole truth."""

import math


def aim(alpha: float, *, margin: float, answered: int, label_noise: float) -> float:
    """The share of satisfied labels to hold so that the share of satisfied requests is alpha.

    ``margin`` standard errors of the rate over the ``answered`` requests come on top: large while
    little is known, gone when much is. Where a label is wrong with probability ``label_noise``,
    the truth alpha shows as noise + (1 - 2 noise) alpha.
    """
    standard_error = math.sqrt(alpha * (1.0 - alpha) / max(answered, 1))
    wanted = min(alpha + margin * standard_error, (1.0 + alpha) / 2.0)
    return label_noise + (1.0 - 2.0 * label_noise) * wanted


def label_weight(satisfaction: float, response_bias: float) -> float:
    """What a label counts where unsatisfied users answer ``response_bias`` times as often.

    A satisfied label then stands for that many times as many requests as an unsatisfied one; the
    two weigh 1 on average.
    """
    return 2.0 * (1.0 + (response_bias - 1.0) * satisfaction) / (1.0 + response_bias)
