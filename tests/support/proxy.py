"""A real LiteLLM proxy process with the plugin, driven over real HTTP."""

import copy
import hashlib
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from sqlalchemy import make_url

from tests.support import failures, postgres
from tests.support.patience import PATIENT, until
from tests.support.ports import free_port

POSTGRES = "MESSPLUS_PROXIES_POSTGRES"
"""The URL of a server on which proxies get databases of their own; set by `--postgres`."""
Config = dict[str, Any]
PAPER: Config = {"alpha": 0.7, "policy": "paper", "V": 100.0}
"""A zoo whose every choice can be worked out by hand."""


def zoo_config(
    upstream_url: str, folder: Path, *, zoo: Config | None = None, **section: Any
) -> Config:
    """Three models behind `zoo`, priced 1 : 10 : 100 a token, and the plugin."""
    prices = {"tiny": 1e-6, "middle": 1e-5, "huge": 1e-4}
    return {
        "model_list": [
            deployment("zoo", name, upstream_url, price) for name, price in prices.items()
        ],
        "litellm_settings": {"callbacks": ["litellm_messplus.plugin.instance"]},
        "general_settings": {"master_key": f"sk-{secrets.token_hex(16)}"},
        "messplus": {
            "database": database_url(folder),
            "zoos": {"zoo": zoo or PAPER},
            "deadline_seconds": PATIENT,
            **section,
        },
    }


WAITS = f"""
from litellm_messplus.brain import feedback

feedback.WAIT_SECONDS = {PATIENT}
"""
IN_THE_BRAIN = """
import sys
from pathlib import Path

if "litellm_messplus.brain.process" in sys.orig_argv:
    import changed_brain

here = Path(__file__)
others = (Path(place, here.name) for place in sys.path if Path(place) != here.parent)
for each in (each for each in others if each.exists()):
    exec(compile(each.read_text(), each, "exec"))
    break
"""
"""What Python runs first in each process below a proxy's folder, before what it was to run so."""


def in_the_brain(folder: Path, code: str) -> None:
    """Have the brain's process run this before anything else, after what it was to run so far."""
    (folder / "sitecustomize.py").write_text(IN_THE_BRAIN)
    with (folder / "changed_brain.py").open("a") as file:
        file.write(code)


def patient(config: Config, folder: Path) -> Config:
    """The same, and verdicts wait as long as it takes for an id that the log has yet to know: on a
    busy machine LiteLLM tells the end of a stream late."""
    in_the_brain(folder, WAITS)
    return config


QUICK = """
from functools import partial
from importlib import import_module

for place, given in {made!r}.items():
    module, name = import_module(place.rpartition(".")[0]), place.rpartition(".")[2]
    setattr(module, name, partial(getattr(module, name), **given))
"""


def quick(config: Config, folder: Path, **made: dict[str, Any]) -> Config:
    """The same, and what the proxy makes of these classes, each named as in `MAKERS`, is given
    these arguments: in place of constants that are too patient for a test."""
    plugin = config["litellm_settings"]["callbacks"][0].removesuffix(".instance")
    places = {MAKERS[name]: given for name, given in made.items()}
    of_brain = {each: given for each, given in places.items() if ".serving." not in each}
    in_the_brain(folder, QUICK.format(made=of_brain))
    of_worker = {each: given for each, given in places.items() if ".serving." in each}
    code = QUICK.format(made=of_worker) + f"\nfrom {plugin} import instance\n"
    (folder / "quick.py").write_text(code)
    config["litellm_settings"]["callbacks"] = ["quick.instance"]
    return config


MAKERS = {
    "asking": "litellm_messplus.brain.judges.Asking",
    "check": "litellm_messplus.labels.checks.source.CallableCheck",
    "explorer": "litellm_messplus.serving.composition.Explorer",
    "failing": "litellm_messplus.serving.deployments.deployment.Failing",
    "judge": "litellm_messplus.brain.judges.Judge",
    "learner": "litellm_messplus.brain.brain.Learner",
    "purse": "litellm_messplus.brain.buying.LabelPurse",
    "verdicts": "litellm_messplus.brain.brain.TokenBuckets",
}
"""Where each class is called."""


def without_plugin(config: Config) -> Config:
    """The same models, served by LiteLLM alone."""
    plain = copy.deepcopy(config)
    del plain["litellm_settings"], plain["messplus"]
    return plain


def database_url(folder: Path) -> str:
    """A file in the folder; with `--postgres`, a database of its own on that server."""
    server = os.environ.get(POSTGRES)
    if server is None:
        return f"sqlite+aiosqlite:///{folder}/messplus.db"
    name = "proxy_" + hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    if not postgres.query(server, "SELECT 1 FROM pg_database WHERE datname = :name", name=name):
        postgres.query(server, f"CREATE DATABASE {name}")
    return make_url(server).set(database=name).render_as_string(hide_password=False)


def deployment(group: str, model: str, url: str, price: float, **params: Any) -> Config:
    return {
        "model_name": group,
        "litellm_params": {
            "model": f"openai/{model}",
            "api_base": url,
            "api_key": "none",
            **params,
        },
        "model_info": {"input_cost_per_token": price, "output_cost_per_token": price},
    }


@dataclass
class Proxy:
    """Starts on a configuration written to ``folder``; ``log`` is what the process printed."""

    config: Config
    folder: Path
    port: int = field(default_factory=free_port)
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    kills: int = 0
    """How often the test has killed it."""
    ended: int = 0
    """How often it had ended by itself when the test was to end it."""
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def master_key(self) -> str:
        return str(self.config["general_settings"]["master_key"])

    @property
    def process_id(self) -> int:
        if self._process is None:
            raise RuntimeError("the proxy is not running")
        return self._process.pid

    @property
    def log(self) -> str:
        return (self.folder / "proxy.log").read_text(errors="replace")

    def start(self) -> "Proxy":
        self.launch()
        try:
            until(self.is_ready, lambda: self.log[-4000:])
        except AssertionError:
            self.kill()
            raise
        return self

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the process without waiting for it to serve."""
        command = [str(Path(sys.executable).parent / "litellm"), *self.options()]
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_COLOR": "1"}
        environment |= self.environment
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(self.folder), environment.get("PYTHONPATH", "")]
        )
        failures.follow(self.folder / "proxy.log")
        with (self.folder / "proxy.log").open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, env=environment, cwd=self.folder
            )
        return self._process

    def options(self) -> list[str]:
        """Write the configuration, and say what the command `litellm` is given."""
        path = self.folder / "config.yaml"
        path.write_text(yaml.safe_dump(self.config, sort_keys=False))
        where = ["--port", str(self.port), "--host", "127.0.0.1"]
        return ["--config", str(path), *where, *self.arguments]

    def stop(self) -> int:
        """SIGTERM, as an operator would; returns the exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """SIGKILL, as a machine's failure would."""
        self.kills += self._process is not None
        return self._end(signal.SIGKILL)

    def client(self, key: str | None = None) -> httpx.Client:
        return httpx.Client(
            base_url=self.url,
            headers={"authorization": f"Bearer {key or self.master_key}"},
            timeout=PATIENT,
        )

    def database(self) -> sqlite3.Connection:
        """The file itself: what reads or writes it is about SQLite."""
        if not self._is_sqlite:
            pytest.skip("about the file of a SQLite database")
        connection = sqlite3.connect(self.folder / "messplus.db")
        connection.row_factory = sqlite3.Row
        return connection

    def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """What a query gives, with a `?` for each parameter."""
        if not self._is_sqlite:
            named = {f"p{place}": value for place, value in enumerate(parameters)}
            for name in named:
                query = query.replace("?", f":{name}", 1)
            return postgres.query(self.config["messplus"]["database"], query, **named)
        connection = self.database()
        try:
            return [dict(row) for row in connection.execute(query, parameters)]
        finally:
            connection.close()

    def wait_for_rows(self, query: str, count: int, *parameters: Any) -> list[dict[str, Any]]:
        """Until the query gives at least so many rows: outcomes are written in batches."""
        until(lambda: len(self.rows(query, *parameters)) >= count, lambda: self.log[-4000:])
        return self.rows(query, *parameters)

    @property
    def _is_sqlite(self) -> bool:
        """As it is where the configuration names no database."""
        return str(self.config["messplus"].get("database", "sqlite")).startswith("sqlite")

    def _end(self, sign: signal.Signals) -> int:
        if self._process is None:
            return 0
        process, self._process = self._process, None
        self.ended += process.poll() is not None
        process.send_signal(sign)
        try:
            return process.wait(timeout=PATIENT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def is_ready(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise AssertionError(f"the proxy ended at its start:\n{self.log[-4000:]}")
        try:
            return httpx.get(f"{self.url}/health/liveliness", timeout=2).status_code == 200
        except httpx.TransportError:
            return False


def history_of(client: httpx.Client, answer: httpx.Response) -> Config:
    """What the log says of the request with that answer."""
    given = answer.headers["x-messplus-request-id"]
    history: Config = client.get(f"/messplus/requests/{given}").raise_for_status().json()
    return history


def ask(client: httpx.Client, prompt: str = "hello", **body: Any) -> httpx.Response:
    """One chat completion of the zoo."""
    return client.post(
        "/v1/chat/completions",
        json={"model": "zoo", "messages": [{"role": "user", "content": prompt}], **body},
    )
