"""A command of a file that is shipped for operators, started here as that file says."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.markdown import ROOT
from tests.support.patience import PATIENT, until


def serve_and_stop(
    command: Sequence[str],
    folder: Path,
    given: Mapping[str, str],
    log: Path,
    is_ready: Callable[[], bool],
) -> None:
    """Start the command in a folder, with the environment that the file gives; wait until it is
    ready, and stop it as an operator does. Nothing else of this process's environment is seen."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT),
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                **given,
            },
            stdout=output,
            stderr=output,
        )

    def serves() -> bool:
        assert process.poll() is None, "the process ended"
        return is_ready()

    try:
        until(serves, lambda: log.read_text(errors="replace")[-4000:])
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENT)
    finally:
        process.kill()
    assert process.returncode in (0, -signal.SIGTERM)
