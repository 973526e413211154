"""Plugins that fail: written beside a test proxy's configuration in place of the real callback."""

BROKEN = """
from litellm_messplus.plugin import instance


def situation(*arguments):
    raise RuntimeError("the engine is broken")


for engine in instance.parts.brain.engines.values():
    engine.situation = situation
"""

SLOW = """
import time

from litellm_messplus.plugin import instance

for engine in instance.parts.brain.engines.values():

    def situation(*arguments, of=engine.situation):
        time.sleep(0.2)
        return of(*arguments)

    engine.situation = situation
"""
