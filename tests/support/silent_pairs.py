"""An encoder by the name under which the builders' traffic is logged."""

from collections.abc import Sequence

import numpy as np

from litellm_messplus.core.encoder import FeatureRows
from tests.support.builders import PairEncoder


class SilentPairs(PairEncoder):
    """Encodes any text, which is never asked for here but at its trial."""

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        return np.zeros((len(texts), self.dimension), np.float32)
