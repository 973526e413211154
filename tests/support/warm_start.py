"""Real proxies that start within a second: LiteLLM is imported once, and forked for each start.

All else is as with the command `litellm`: the child reads its configuration, loads the plugin and
serves in a process of its own, which a kill ends. The tests of a cold start are in end_to_end.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import cast

from tests.support.patience import PATIENT, until
from tests.support.processes import is_running
from tests.support.proxy import Proxy

IMPORTED = (
    *("litellm.proxy.proxy_server", "alembic.command", "aiosqlite", "asyncpg"),
    "litellm_messplus.serving.startup",
)
"""What takes long to import, and starts nothing."""


class WarmStart:
    """A process that has imported LiteLLM, and gives birth to proxies on request."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_COLOR": "1"},
        )

    def fork(self, arguments: list[str], folder: Path, environment: dict[str, str]) -> int:
        """The id of a process in which `litellm` runs with these arguments, and logs there."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the warm start has no pipes")
        wanted = {"arguments": arguments, "folder": str(folder), "environment": environment}
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End it; the proxies that it made have been ended before."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.wait(timeout=PATIENT)


@dataclass
class _Forked:
    """A process that is not a child of this one, with what `Proxy` uses of a Popen."""

    pid: int

    def poll(self) -> int | None:
        return None if is_running(self.pid) else 1

    def send_signal(self, sign: signal.Signals) -> None:
        """To a process that may have ended by itself."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, sign)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float = PATIENT) -> int:
        """Return when it is gone. The status that it ended with is its parent's to know."""
        try:
            until(lambda: not is_running(self.pid))
        except AssertionError as error:
            raise subprocess.TimeoutExpired("litellm", timeout) from error
        return 0


@dataclass
class WarmProxy(Proxy):
    """A proxy that ``warm`` starts."""

    warm: WarmStart = field(kw_only=True)

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the process without waiting for it to serve."""
        forked = self.warm.fork(self.options(), self.folder, self.environment)
        self._process = cast("subprocess.Popen[bytes]", _Forked(forked))
        return self._process


def _serve(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """In the child: what the command `litellm` does."""
    from litellm.proxy.proxy_cli import run_server

    os.environ.update(environment)
    tempfile.tempdir = None  # as it was before anybody asked for it
    log = os.open(f"{folder}/proxy.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for ours, theirs in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(ours, theirs)
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.argv = ["litellm", *arguments]
    run_server()


def _main() -> None:
    for name in IMPORTED:
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children that end leave nothing behind
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _serve(**json.loads(line))
            os._exit(0)
        print(child, flush=True)


if __name__ == "__main__":
    _main()
