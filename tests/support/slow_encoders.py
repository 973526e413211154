"""Slow encoders by dotted path, for a process of their own: the text says what becomes of it.

What follows an `@` in a text is the path of a file that is made when its encoding begins.
"""

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from litellm_messplus.conformance.encoders import FakeEncoder
from litellm_messplus.prediction.encoder import FeatureRows

HERE = __name__
STARTS = "MESSPLUS_TEST_STARTS"
"""A file that gets a line for every encoder that is made, where the environment names one."""
BURNT_SECONDS = 0.02


class Telling(FakeEncoder):
    """Two features: its process, and that process's niceness."""

    def __init__(self) -> None:
        super().__init__(2, is_fast=False)

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        for text in texts:
            word, _, begun = text.partition("@")
            if begun:
                Path(begun).touch()
            match word:
                case "end":
                    os._exit(3)
                case "hang":  # and nothing else in the process can run meanwhile
                    re.match(r"(a+)+$", "a" * 40 + "b")
                case "fail":
                    raise RuntimeError("out of memory")
        told = [os.getpid(), os.getpriority(os.PRIO_PROCESS, 0)]
        return np.array([told] * len(texts), dtype=np.float32).reshape(-1, 2)


class Counted(Telling):
    """Leaves a line when it is made; its name is that of a model which is trained anew meanwhile,
    or the first one's alone with ``is_retrained`` false."""

    is_retrained = False

    def __init__(self) -> None:
        super().__init__()
        path = Path(os.environ[STARTS])
        with path.open("a") as file:
            file.write("made\n")
        self.made = path.read_text().count("made")
        if self.is_retrained:
            self.name += f"-{self.made > 2}"  # the first is the proxy's, which reads


class Retrained(Counted):
    is_retrained = True


class OnceOnly(Counted):
    """The process comes up once, and never again."""

    def __init__(self) -> None:
        super().__init__()
        if self.made > 2:
            os._exit(4)


class Unstartable(FakeEncoder):
    """Made in one process, and ends another one that tries it."""

    def __init__(self) -> None:
        super().__init__(is_fast=False)

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        os._exit(5)


class Failing(FakeEncoder):
    def __init__(self) -> None:
        super().__init__(is_fast=False, failure=RuntimeError("out of memory"))


class Burning(Telling):
    """Computes for BURNT_SECONDS a text; a text may wait as well, which takes no computing."""

    def encode(self, texts: Sequence[str]) -> FeatureRows:
        ends = time.process_time() + BURNT_SECONDS * len(texts)
        while time.process_time() < ends:
            pass
        if "wait" in texts:
            time.sleep(0.5)
        return super().encode(texts)
