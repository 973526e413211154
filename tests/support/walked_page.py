"""A page whose commands are run in the order in which it shows them, on a real proxy."""

import os
import re
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import yaml

from tests.support.markdown import Block
from tests.support.patience import PATIENT, until
from tests.support.ports import free_port
from tests.support.proxy import Proxy

PAGES_ADDRESS = "http://127.0.0.1:4000"
START = "litellm --config proxy_config.yaml"
CHANGES = re.compile(r"--mode|PATCH|^cp ", re.MULTILINE)
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-\d+)?")
ENDPOINT = re.compile(r"http://gpu-\d:\d+/v1")
PATIENCE = {"deadline_seconds": PATIENT}


@dataclass
class WalkedPage:
    """The reader of a page, who writes the files that it shows into ``folder`` and runs its
    commands there. Every model of the page is served by ``endpoint``."""

    folder: Path
    endpoint: str
    key: str = field(default_factory=lambda: f"sk-{secrets.token_hex(16)}")
    proxy: Proxy | None = None

    def walk(self, blocks: list[Block]) -> Iterator[Block]:
        """Do what the blocks say, one after the other, and give each when it is done."""
        for block, after in zip(blocks, [*blocks[1:], None], strict=True):
            if block.language == "yaml":
                self._write(block.code)
            elif block.language == "sh":
                is_shown = after is not None and after.language == ""
                self._run(block.code, after.code if after is not None and is_shown else None)
            yield block

    def stop(self) -> None:
        """Stop the proxy."""
        if self.proxy is not None:
            self.proxy.stop()

    def _write(self, config: str) -> None:
        (self.folder / "proxy_config.yaml").write_text(ENDPOINT.sub(self.endpoint, config))

    def _run(self, code: str, expected: str | None) -> None:
        commands = code.replace(START, "").strip()
        if commands:
            found = self._said(commands)
            if expected is not None and CHANGES.search(commands):
                assert is_as_shown(found, expected), f"{commands}\n{found}"
            elif expected is not None:
                self._repeat(commands, expected)
        if START in code:
            self._restart()

    def _repeat(self, commands: str, expected: str) -> None:
        """Run what only shows until it shows that: requests take their time."""
        found = ""

        def is_shown() -> bool:
            nonlocal found
            found = self._said(commands)
            return is_as_shown(found, expected)

        until(is_shown, lambda: f"{commands}\n{found}")

    def _said(self, commands: str) -> str:
        """What a shell says to commands, where ours are found first."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "LITELLM_MASTER_KEY": self.key}
        if self.proxy is not None:
            commands = commands.replace(PAGES_ADDRESS, self.proxy.url)
            commands = commands.replace("messplus zoo", f"messplus zoo --url {self.proxy.url}")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=self.folder,
            env={**environment, "COLUMNS": "1000", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _restart(self) -> None:
        config = yaml.safe_load((self.folder / "proxy_config.yaml").read_text())
        if "messplus" in config:
            config["messplus"] |= PATIENCE
        port = free_port() if self.proxy is None else self.proxy.port
        self.stop()
        keys = {"LITELLM_MASTER_KEY": self.key}
        self.proxy = Proxy(config, self.folder, port, environment=keys).start()


def is_as_shown(found: str, expected: str) -> bool:
    """Tell whether words are those that the page shows; any number stands for any other, `…` for
    any words, and a line of it for any lines."""
    pattern = "\n".join(_pattern(line) for line in expected.strip().splitlines())
    return re.fullmatch(pattern, found.strip().replace("\r", "")) is not None


def _pattern(line: str) -> str:
    if line == "…":
        return r"(?s:.*)"
    words = ("[^\n]*".join(map(re.escape, part.split("…"))) for part in NUMBER.split(line))
    return NUMBER.pattern.join(words)


class Users:
    """Users who go on asking for as long as the block lasts; ``refused`` are what got no answer.
    While the proxy is restarted they are told to wait."""

    def __init__(self, page: WalkedPage, group: str, at_once: int) -> None:
        self._page = page
        self._group = group
        self._may_ask, self._is_over = threading.Event(), threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(number,)) for number in range(at_once)
        ]
        self._under_way = 0
        self._lock = threading.Lock()
        self.answered = 0
        self.refused: list[str] = []

    def __enter__(self) -> "Users":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._may_ask.set()
        for thread in self._threads:
            thread.join()

    def go_on(self) -> None:
        """Let them ask."""
        self._may_ask.set()

    def wait(self) -> None:
        """Let them wait, from when their answers are there."""
        self._may_ask.clear()
        until(lambda: self._under_way == 0)

    def _ask(self, user: int) -> None:
        with httpx.Client(timeout=PATIENT) as http:
            number = 0
            while not self._is_over.is_set():
                self._may_ask.wait()
                with self._lock:
                    if not self._may_ask.is_set():
                        continue
                    self._under_way += 1
                try:
                    number += 1
                    if not self._is_over.is_set():
                        self._one(http, f"question {number} of user {user}")
                finally:
                    with self._lock:
                        self._under_way -= 1

    def _one(self, http: httpx.Client, prompt: str) -> None:
        assert self._page.proxy is not None
        body = {"model": self._group, "messages": [{"role": "user", "content": prompt}]}
        try:
            answer = http.post(
                f"{self._page.proxy.url}/v1/chat/completions",
                headers={"authorization": f"Bearer {self._page.key}"},
                json=body,
            )
        except httpx.HTTPError as error:
            self.refused.append(repr(error))
            return
        if answer.status_code == 200:
            self.answered += 1
        else:
            self.refused.append(answer.text)
