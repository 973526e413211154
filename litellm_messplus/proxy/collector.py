"""The garbage collector's rounds, kept short and rare while requests wait.

A round stops the event loop. LiteLLM's modules alone are 800,000 objects, and a full round over
them takes 0.1 to 0.4 s: a decision caught in it misses its deadline. What is frozen is in no round,
but Python then judges by the few objects left, and at its own threshold full rounds come more
often: the rounds took 3 to 5 % of the proxy's CPU, of LiteLLM without the plugin 1.6 %. So the
threshold is raised as well, which leaves 0.5 %.
"""

import gc
import os

OPERATORS = "PYTHON_GC_THRESHOLD"
"""LiteLLM's own setting of the thresholds; where it is there, it stands."""
YOUNG = 5_000
"""Objects made and not yet freed before a round: more than the requests in flight hold, so that
most of them are gone by themselves. What waits to be collected stays some MiB."""


def spare() -> None:
    """Take what is loaded by now out of all rounds, and make the rounds rarer."""
    gc.collect()
    gc.freeze()
    if not os.environ.get(OPERATORS):
        _, middle, old = gc.get_threshold()
        gc.set_threshold(YOUNG, middle, old)
