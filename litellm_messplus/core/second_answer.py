"""A second answer: what it is worth to read an answer, and to call another model if it looks bad.

At the price of satisfaction, an answer of A is replaced if another model is worth more than its
cost: price * (p_B(s) - p_A(s)) > c_B, where s is what the answer shows. So A with its answer read
is a better arm than A alone, by the mean of that surplus over what its answers usually show. The
arm stands in the plan's frontier, and is chosen before the call, since a cascade that always begins
with the cheapest model pays for two (2605.06350).

Left out: nothing is read, and every decision is as before.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.core.answer_heads import Spread, moved
from litellm_messplus.core.trust import EDGE, logistics

Array = NDArray[np.float64]

TINY = 1e-12
"""Least price that is divided by: at none is a second answer worth anything."""
CHECKED_SHARE = 0.1
"""Share of the replaced answers that get a label: else a model would be judged by the answers that
looked good alone."""


class Gains(NamedTuple):
    """Gains of each model from reading its answer, each of shape (prices, prompts, models): the
    ``value`` at the price, in the unit of cost, the satisfaction (``rate``) and the ``cost``."""

    value: Array
    rate: Array
    cost: Array


class Best(NamedTuple):
    """The best second answer to each first one, each of shape (prices, prompts, first models,
    ...): the ``place`` of its model, the ``surplus`` at the price, in the unit of cost, and whether
    that ``is_worth`` the call."""

    place: NDArray[np.intp]
    surplus: Array
    is_worth: NDArray[np.bool_]


def best_seconds(
    chance: Array, cost: Array, shown: Array, then: Array, margin: float, prices: Array
) -> Best:
    """Find the best second answer, given the ``chance`` and ``cost`` of each model before any call,
    shape (prompts, models); what the first answers have ``shown``, shape (prompts, first models,
    quantiles); and the second ones' chances ``then``, shape (prompts, first models, models,
    quantiles).

    No model is called twice; and none is called that was worth its cost before a sign.
    """
    price = prices[:, None, None, None]
    others = np.where(np.eye(chance.shape[1], dtype=np.bool_), np.inf, cost[:, None, :])
    before = price * (chance[:, None, :] - chance[:, :, None]) - others
    more = then - shown[:, :, None, :] - margin
    surplus = price[..., None] * more - others[..., None]
    most = surplus.max(axis=-2)
    least = np.maximum(before.max(axis=-1), 0.0)[..., None]
    return Best(surplus.argmax(axis=-2), most, most > least)


def _expected(chance: Array, cost: Array, spread: Spread, prices: Array) -> Best:
    """Find the best second answers to what the first ones usually show, each of shape (prices,
    prompts, first models, quantiles)."""
    chance = np.clip(chance, EDGE, 1.0 - EDGE)
    shown = logistics(np.log(chance / (1.0 - chance))[..., None] + spread.scores)
    shown = np.clip(shown + (chance - shown.mean(axis=-1))[..., None], EDGE, 1.0 - EDGE)
    likeness = spread.likeness[..., None]
    first = chance[:, :, None, None]
    then = moved(chance[:, None, :, None], first, shown[:, :, None, :], likeness)
    best = best_seconds(chance, cost, shown, then, float(spread.margin[0]), prices)
    shows = (spread.scores != 0.0).any(axis=-1)[:, None]
    return best._replace(is_worth=best.is_worth & shows)


def gains(chance: Array, cost: Array, spread: Spread, prices: Array) -> Gains:
    """Compute the gains from each model's predicted ``chance`` and ``cost``, both of shape
    (prompts, models), at each of the ``prices``, shape (prices,).

    A model whose answers show nothing gains exactly 0.
    """
    best = _expected(chance, cost, spread, prices)
    value = np.where(best.is_worth, best.surplus, 0.0).mean(axis=-1)
    prompts = np.arange(len(cost))[:, None, None]
    paid = np.where(best.is_worth, cost[prompts, best.place], 0.0).mean(axis=-1)
    rate = (value + paid) / np.maximum(prices, TINY)[:, None, None]
    return Gains(value, rate, paid)


def shares(chance: Array, cost: Array, spread: Spread, price: float) -> Array:
    """Compute the share of each first model's answers that each other model's will replace at a
    price, shape (prompts, first models, models)."""
    best = _expected(chance, cost, spread, np.array([price]))
    is_it = best.place[0][:, :, None, :] == np.arange(cost.shape[1])[:, None]
    found: Array = (is_it & best.is_worth[0][:, :, None, :]).mean(axis=-1)
    return found


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
    chance, cost = np.array([chances]), np.array([costs])
    seen = np.full((1, len(chances), 1), shown)
    then = moved(chance, chances[first], shown, spread.likeness[first])
    every = np.broadcast_to(then[:, None, :, None], (1, len(chances), len(chances), 1))
    margin = float(spread.margin[0])
    best = best_seconds(chance, cost, seen, every, margin, np.array([price]))
    if not best.is_worth[0, 0, first, 0]:
        return None
    place = int(best.place[0, 0, first, 0])
    return Second(place, float(then[0, place]))
