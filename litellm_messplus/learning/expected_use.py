"""What each model would use for the recent prompts: tokens read and written, and seconds.

Frozen together with their predicted satisfactions: both are then of one moment of the fold, so
that a plan is the same whenever it is asked for, in another worker and after a restart too. Prices
are not part of it: they may change while a proxy runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litellm_messplus.costs.price import Price
from litellm_messplus.costs.token_estimator import TokenEstimator, expected
from litellm_messplus.prediction.length_heads import LengthHeads
from litellm_messplus.prediction.recent_prompts import RecentPrompts
from litellm_messplus.prediction.surface import CHARACTERS

Matrix = NDArray[np.float64]
_ARRAYS = ("prompt_tokens", "completion_tokens", "seconds")


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedUse:
    """Each of shape (prompts, models); ``version`` is that of the recent prompts."""

    version: int
    prompt_tokens: Matrix
    completion_tokens: Matrix
    seconds: Matrix

    @classmethod
    def none_yet(cls, models: int) -> "ExpectedUse":
        """Before there is a recent prompt."""
        return cls(0, *(np.zeros((0, models)) for _ in _ARRAYS))

    @classmethod
    def of(
        cls, recent: RecentPrompts, lengths: LengthHeads, estimators: Sequence[TokenEstimator]
    ) -> "ExpectedUse":
        """Of the recent prompts, as of now."""
        kept = len(recent)
        is_seen = recent.is_seen[:kept, None]
        surface = np.where(is_seen, recent.ramps[:kept], lengths.average.surface)
        multiples = lengths.multiples_of_many(surface, recent.words[:kept])
        characters = np.exp2(recent.numbers[:kept, CHARACTERS].astype(np.float64)) - 1.0
        ratio = np.array([each.characters_per_token.value for each in estimators])
        tokens = characters[:, None] / ratio
        unseen = np.array([each.prompt_tokens.value for each in estimators])
        return cls(
            recent.version,
            np.where(is_seen, tokens, unseen),
            multiples * np.array(expected([each.completion_tokens for each in estimators])),
            multiples * np.array(expected([each.seconds for each in estimators])),
        )

    def cost(self, place: int, price: Price) -> Matrix:
        """Of the model at that place, shape (prompts,), in the unit of ``price``."""
        return price.of(
            self.prompt_tokens[:, place],
            self.completion_tokens[:, place],
            seconds=self.seconds[:, place],
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "use_version": np.array([self.version]),
            **{f"use_{name}": getattr(self, name) for name in _ARRAYS},
        }

    @classmethod
    def load(cls, arrays: Mapping[str, NDArray[Any]]) -> "ExpectedUse":
        """What ``arrays`` gave."""
        return cls(int(arrays["use_version"][0]), *(arrays[f"use_{name}"] for name in _ARRAYS))
