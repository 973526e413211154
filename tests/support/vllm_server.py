"""A real vLLM server on this machine's processor, on a port of its own."""

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.support.patience import until
from tests.support.ports import free_port
from tests.support.vllm_counters import Work, work_done

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
COMMAND = ROOT / "tests" / "vllm" / "vllm_command.py"
STOP_SECONDS = 60.0
ENVIRONMENT = {
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # else every server binds itself to the first core
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
SMALL = {
    "dtype": "float32",
    "max-model-len": "512",
    "max-num-seqs": "8",
    "max-num-batched-tokens": "512",
    "kv-cache-memory-bytes": "64M",
}
"""Flags for a tiny model: without them a server takes gigabytes, and minutes to start."""
ANSWERS = ("--enable-per-request-metrics", "--enable-prompt-tokens-details")
"""What answers tell beside the text, as in `docs/vllm.md`."""


def vllm(*arguments: str) -> list[str]:
    """The command line of `vllm` with these arguments; RuntimeError where it is not installed."""
    if not PYTHON.exists():
        raise RuntimeError(f"{PYTHON} is not there: run `make test-vllm`, which installs vLLM")
    return [str(PYTHON), str(COMMAND), *arguments]


@dataclass
class VllmServer:
    """Serves the model of folder ``model`` under the folder's name; its log goes to ``logs``."""

    model: Path
    logs: Path
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.logs / f"{self.name}.log").read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def launch(self) -> None:
        """Start the processes without waiting for them to serve."""
        flags = {**SMALL, "host": "127.0.0.1", "port": str(self.port)}
        command = vllm("serve", str(self.model), "--served-model-name", self.name)
        command += [part for name, value in flags.items() for part in (f"--{name}", value)]
        command += ["--enforce-eager", *ANSWERS]
        with (self.logs / f"{self.name}.log").open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,  # one group of processes, to be killed as one
            )

    def wait_until_ready(self) -> None:
        until(self._is_ready, lambda: self.log[-4000:])

    def stop(self) -> None:
        """SIGTERM to the parent, which ends its children; whatever is left then is killed."""
        if self._process is None:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to all of its processes at once, as a machine's failure would."""
        if self._process is None:
            return
        process, self._process = self._process, None
        with suppress(ProcessLookupError):  # all of them have ended
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def work_done(self) -> Work:
        """By the server's own count, since its start."""
        return work_done(self.url)

    def _is_ready(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise AssertionError(
                f"the server of {self.name} ended at its start:\n{self.log[-4000:]}"
            )
        try:
            return httpx.get(f"{self.url}/health", timeout=2).status_code == 200
        except httpx.TransportError:
            return False
