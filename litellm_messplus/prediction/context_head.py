"""What the prompt adds to a model's mean: one shift of the log-odds, shared by all models.

Why it exists: a prompt that is hard for one model is hard for the others, so a label of any model
teaches all of them; a dear model, rarely called, never earns enough labels for a head of its own.
Prequential log-loss on the five shared files shuffled together, labels of one model a request:
0.007 nats below the mean alone over the first 1,000, 0.017 from 3,000 on; half of that with a
ridge for each model. In log-odds, a model that is nearly always right gains little by an easy
prompt; the gap between two models is what decides.

Inside one benchmark the prompt tells nearly nothing. Therefore three experts (the mean alone, half
and all of the shift) are weighed by exp(-discounted log-loss) of what each predicted before the
label was known.
"""

import math

SCALES = (0.0, 0.5, 1.0)
BLEND_MEMORY = 500.0
_KEEP = 1.0 - 1.0 / BLEND_MEMORY
_EDGE = 0.01


class Blend:
    """Bayes weights of the experts by discounted prequential log-loss."""

    def __init__(self) -> None:
        self.losses = [0.0] * len(SCALES)
        self.trust = sum(SCALES) / len(SCALES)

    def score(self, rate: float, shift: float, label: float, weight: float) -> None:
        """Charge every expert its log-loss on one label and weigh anew."""
        for expert, scale in enumerate(SCALES):
            guess = shifted(rate, scale * shift)
            loss = -label * math.log(guess) - (1.0 - label) * math.log(1.0 - guess)
            self.losses[expert] = self.losses[expert] * _KEEP + weight * loss
        least = min(self.losses)
        weights = [math.exp(least - loss) for loss in self.losses]
        self.trust = sum(w * s for w, s in zip(weights, SCALES, strict=True)) / sum(weights)


def shifted(rate: float, shift: float) -> float:
    """A probability, moved by so many nats of log-odds."""
    rate = within(rate)
    return within(rate / (rate + (1.0 - rate) * math.exp(-shift)))


def within(probability: float) -> float:
    return min(max(probability, _EDGE), 1.0 - _EDGE)
