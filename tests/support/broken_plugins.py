"""Plugins that fail: written beside a test proxy's configuration in place of the real callback."""

BROKEN = """
from litellm_messplus.plugin import instance


class Broken:
    name, dimension = "broken", 1

    def encode(self, text):
        raise RuntimeError("the encoder is broken")


for engine in instance.engines.values():
    engine.encoder = Broken()
"""

SLOW = """
import time

from litellm_messplus.plugin import instance

for engine in instance.engines.values():
    encode = engine.encoder.encode

    class Slow:
        name, dimension = engine.encoder.name, engine.encoder.dimension

        def encode(self, text, encode=encode):
            time.sleep(0.2)
            return encode(text)

    engine.encoder = Slow()
"""
