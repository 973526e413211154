"""What one run came to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.replay.recording import Matrix

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Per request: which model served, and its virtual queue before it was decided, both of shape
    (requests,); ``calls``, of shape (requests, models), tells which models were called at all.

    ``satisfied`` is the truth of the served calls, whatever their labels said; ``cost`` that of
    every call, explorations too. ``queue`` is None where the baseline has none.
    """

    served: NDArray[np.intp]
    calls: NDArray[np.bool_]
    satisfied: Vector
    cost: Vector
    explorations: int
    queue: Vector | None = None

    @classmethod
    def of(
        cls,
        served: NDArray[np.intp],
        calls: NDArray[np.bool_],
        truth: Matrix,
        cost: Matrix,
        *,
        explorations: int = 0,
        queue: Vector | None = None,
    ) -> "Outcome":
        """Looked up in what every model would have answered, and cost; see ``Outcome``."""
        requests = np.arange(len(served))
        return cls(
            served=served,
            calls=calls,
            satisfied=truth[requests, served],
            cost=(calls * cost).sum(axis=1),
            explorations=explorations,
            queue=queue,
        )

    @classmethod
    def of_served(cls, served: NDArray[np.intp], truth: Matrix, cost: Matrix) -> "Outcome":
        """Of a baseline that calls nothing but the model that serves."""
        calls = np.zeros(cost.shape, dtype=np.bool_)
        calls[np.arange(len(served)), served] = True
        return cls.of(served, calls, truth, cost)
