"""What runs in the process of a slow encoder: `python -m litellm_messplus.encoders.worker`.

Over its line it first says `("ready", name, dimension)`, or `("refused", key, given, allowed)` as a
ConfigurationError has them. Then each list of texts is answered by their features, float32 of shape
(texts, dimension), or by an error's words and traceback.
"""

import fcntl
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.prediction.encoder import Encoder, FeatureRows

NICENESS = 10
"""On busy cores requests go before their features, which still get a tenth of a core."""
THREADS = Path("/proc/self/task")


def main(setting: str, descriptor: str) -> None:
    """Until the line ends, which it does with the proxy."""
    end_with_stdin()
    for ending in (signal.SIGINT, signal.SIGTERM):  # a group's: the proxy ends us when it is done
        signal.signal(ending, signal.SIG_IGN)
    line: Connection[object, Sequence[str]] = Connection(int(descriptor))
    try:
        encoder = load_encoder(setting)
    except ConfigurationError as error:
        line.send(("refused", error.key, error.given, error.allowed))
        return
    if not has_gpu():
        give_way()
    with suppress(EOFError, ConnectionError):
        line.send(("ready", encoder.name, encoder.dimension))
        while True:
            line.send(encoded(encoder, line.recv()))


def end_with_stdin() -> None:
    """The system ends this process when stdin is closed, whatever is being computed meanwhile.

    Nothing is ever written there, so the signal comes at its end alone.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    stdin = sys.stdin.fileno()
    fcntl.fcntl(stdin, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(stdin, fcntl.F_GETFL)
    fcntl.fcntl(stdin, fcntl.F_SETFL, flags | os.O_ASYNC)


def has_gpu() -> bool:
    """Whether the encoder that was loaded computes on one, by torch."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())


def give_way() -> None:
    """A GPU is fed by little work that must not wait; computing on the CPU takes whole cores."""
    threads = [int(path.name) for path in THREADS.iterdir()] if THREADS.is_dir() else [0]
    for thread in threads:  # on Linux each has a priority of its own
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, thread, NICENESS)


def encoded(encoder: Encoder, texts: Sequence[str]) -> FeatureRows | tuple[str, str]:
    """What goes back over the line."""
    try:
        return np.asarray(encoder.encode(texts), dtype=np.float32)
    except Exception as error:  # of any library, or of others' code
        return repr(error), traceback.format_exc()


if __name__ == "__main__":
    main(*sys.argv[1:])
