"""The process of a slow encoder: `python -m litellm_messplus.encoders.worker`.

Over its connection it first receives the consumption that a process before it measured. It sends
`("ready", name, dimension, consumption)`, the last a `Consumption` or why there is none, or
`("refused", key, given, allowed)` as in a ConfigurationError. Then it answers each list of texts by
an `Encoded`, its rows float32, or by an error's text and traceback.
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
from typing import Any

import numpy as np

from litellm_messplus.encoders.batcher import Encode, Encoded, unmeasured
from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.encoders.process import Consumption, measured, send
from litellm_messplus.energy.meter import NotMeasuredError
from litellm_messplus.prediction.encoder import Encoder
from litellm_messplus.runtime.errors import ConfigurationError

NICENESS = 10
"""On busy cores requests take precedence over features, which still get a tenth of a core."""
THREADS = Path("/proc/self/task")


def main(setting: str, descriptor: str) -> None:
    """Serve until the connection closes, as it does with the proxy."""
    end_with_stdin()
    for ending in (signal.SIGINT, signal.SIGTERM):  # a group's: the proxy ends us when it is done
        signal.signal(ending, signal.SIG_IGN)
    line: Connection[object, Any] = Connection(int(descriptor))
    try:
        encoder = load_encoder(setting)
    except ConfigurationError as error:
        send(line, ("refused", error.key, error.given, error.allowed))
        return
    if not has_gpu():
        give_way()
    with suppress(EOFError, ConnectionError):
        encode, consumption = metered(encoder, line.recv())
        send(line, ("ready", encoder.name, encoder.dimension, consumption))
        while True:
            send(line, answer(encode, line.recv()))


def end_with_stdin() -> None:
    """Let the system end this process when stdin is closed, even during a computation.

    Nothing is ever written there, so the signal comes only when it closes.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    stdin = sys.stdin.fileno()
    fcntl.fcntl(stdin, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(stdin, fcntl.F_GETFL)
    fcntl.fcntl(stdin, fcntl.F_SETFL, flags | os.O_ASYNC)


def has_gpu() -> bool:
    """Tell whether the loaded encoder computes on a GPU, by torch."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())


def gpus_in_use() -> list[int]:
    """List the GPUs on which torch has memory, by its numbers, which Zeus uses as well."""
    if not has_gpu():
        return []
    cuda = sys.modules["torch"].cuda
    return [each for each in range(cuda.device_count()) if cuda.memory_allocated(each)]


def give_way() -> None:
    """Lower the priority of this process: feeding a GPU is little work that must not wait, but
    computing on the CPU takes whole cores."""
    threads = [int(path.name) for path in THREADS.iterdir()] if THREADS.is_dir() else [0]
    for thread in threads:  # on Linux each has its own priority
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, thread, NICENESS)


def metered(encoder: Encoder, known: Consumption | str | None) -> tuple[Encode, Consumption | str]:
    """Return the function that encodes, with joules if measurable, and the consumption, or why it
    is unknown. A known one of the same devices is kept: a measurement now would include
    requests."""
    gpus = gpus_in_use()
    if not (isinstance(known, Consumption) and known.gpus == gpus):
        try:
            known = measured(encoder, gpus)
        except NotMeasuredError as error:
            return unmeasured(encoder), f"not measured: {error}"
    consumption = known
    return lambda texts: _metered(encoder, texts, consumption), consumption


def _metered(encoder: Encoder, texts: Sequence[str], consumption: Consumption) -> Encoded:
    started = consumption.clock()
    rows = encoder.encode(texts)
    return Encoded(rows, consumption.joules(len(texts), consumption.clock() - started))


def answer(encode: Encode, texts: Sequence[str]) -> Encoded | tuple[str, str]:
    """Encode the texts, and return the reply for the connection."""
    try:
        found = encode(texts)
        return Encoded(np.asarray(found.rows, dtype=np.float32), found.joules)
    except Exception as error:  # of any library, or of third-party code
        return repr(error), traceback.format_exc()


if __name__ == "__main__":
    main(*sys.argv[1:])
