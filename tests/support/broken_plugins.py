"""Code that fails: run in a test proxy's brain before anything else."""

BROKEN = """
from litellm_messplus.core.engine import Engine


def situation(*arguments):
    raise RuntimeError("the engine is broken")


Engine.situation = situation
"""

SLOW = """
import time

from litellm_messplus.core.engine import Engine

decided = Engine.situation


def situation(*arguments):
    time.sleep(0.2)
    return decided(*arguments)


Engine.situation = situation
"""
