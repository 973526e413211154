"""A second answer: what it is worth to read an answer, and to call another model if it looks bad.

At the price of satisfaction, an answer of A is replaced if another model is worth more than its
cost: price * (p_B(s) - p_A(s)) > c_B, where s is what the answer shows. So A with its answer read
is a better arm than A alone, by the mean of that surplus over what its answers usually show. The
arm stands in the plan's frontier, and is chosen before the call, since a cascade that always begins
with the cheapest model pays for two (2605.06350).

Left out: nothing is read, and every decision is as before.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.prediction.answer_heads import Spread, moved
from litellm_messplus.prediction.trust import EDGE, logistics

Array = NDArray[np.float64]

CHECKED_SHARE = 0.1
"""Share of the replaced answers that get a label: else a model would be judged by the answers that
looked good alone."""


class Gains(NamedTuple):
    """Gains of each model from reading its answer, each of shape (prices, prompts, models): the
    ``value`` at the price, in the unit of cost, the satisfaction (``rate``) and the ``cost``."""

    value: Array
    rate: Array
    cost: Array


def gains(chance: Array, cost: Array, spread: Spread, prices: Array) -> Gains:
    """Compute the gains from each model's predicted ``chance`` and ``cost``, both of shape
    (prompts, models), at each of the ``prices``, shape (prices,).

    A model whose answers show nothing gains exactly 0.
    """
    chance = np.clip(chance, EDGE, 1.0 - EDGE)
    shown = logistics(np.log(chance / (1.0 - chance))[..., None] + spread.scores)
    shown = np.clip(shown + (chance - shown.mean(axis=-1))[..., None], EDGE, 1.0 - EDGE)
    first, first_shown = chance[:, :, None, None], shown[:, :, None, :]
    then = moved(chance[:, None, :, None], first, first_shown, spread.likeness[..., None])
    more = then - first_shown - spread.margin  # (prompts, first, second, quantiles)
    price = prices[:, None, None, None]
    known = price * (chance[:, None, :] - chance[:, :, None]) - cost[:, None, :]
    least = np.maximum(known.max(axis=-1), 0.0)[..., None]
    surplus = price[..., None] * more - cost[:, None, :, None]
    best = surplus.argmax(axis=-2)
    value = np.take_along_axis(surplus, best[..., None, :], -2)[..., 0, :]
    gained = np.take_along_axis(np.broadcast_to(more, surplus.shape), best[..., None, :], -2)
    paid = cost[np.arange(len(cost))[:, None, None], best]
    is_worth = (value > least) & (spread.scores != 0.0).any(axis=-1)[:, None]
    return Gains(
        np.where(is_worth, value, 0.0).mean(axis=-1),
        np.where(is_worth, gained[..., 0, :], 0.0).mean(axis=-1),
        np.where(is_worth, paid, 0.0).mean(axis=-1),
    )


def gains_of(
    chances: Sequence[float], costs: Sequence[float], spread: Spread, price: float
) -> Gains:
    """Compute the gains for one request at one price, each of shape (1, 1, models)."""
    return gains(np.array([chances]), np.array([costs]), spread, np.array([price]))


class Second(NamedTuple):
    """The model to call for a second answer, by its ``place``, and its ``chance`` to satisfy."""

    place: int
    chance: float


def second(
    first: int,
    shown: float,
    chances: Sequence[float],
    costs: Sequence[float],
    spread: Spread,
    price: float,
) -> Second | None:
    """Choose who answers instead of the model at place ``first``, whose answer satisfies with
    probability ``shown``; None if that answer is kept."""
    best, most, least = None, -math.inf, 0.0
    for place, (chance, cost) in enumerate(zip(chances, costs, strict=True)):
        if place == first:
            continue
        least = max(least, price * (chance - chances[first]) - cost)
        then = float(moved(chance, chances[first], shown, float(spread.likeness[first, place])))
        surplus = price * (then - shown - float(spread.margin[0])) - cost
        if surplus > most:
            best, most = Second(place, then), surplus
    return best if most > least else None
