"""What is recorded: each kind gives texts by the name of their file."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import httpx
import typer
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from litellm_messplus.core import snapshot
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.upkeep.verify import verify
from tests.goldens import hour, still
from tests.goldens.plain import as_json, as_text, changes, digest, rows
from tests.goldens.seeded import seeded
from tests.goldens.served import proxy_config, served, url
from tests.support.builders import LARGE, MEDIUM, POLICIES, SMALL, build_zoo
from tests.support.folding import fold_all
from tests.support.recordings import write_csv

Texts = dict[str, str]
MODELS = ("small", "medium", "large")
WORDS = ["sum", "list", "poem", "table", "code", "verb", "tax", "whale", "moon", "sql", "haiku"]
EXPLAINED = ("zoo90", "zoo121", "zoo122", "other171", "quiet55", "down3", "zoo3")
"""The last is pruned."""
RECORDINGS = {"easy": 0.1, "hard": 0.5, "flat": 1.0}
"""By name: how noisy the models are."""
PROMPTS = 80
PROMISE = {"zoo": "zoo", "service_level": "default"}
CONFIGURED: dict[str, Any] = {
    "zoo": {
        "alpha": 0.6,
        "service_levels": {"gold": {"alpha": 0.75}},
        "labels": {"checks": {"complete": True}},
        "buy_labels": {"how": "grade", "judge": "critic"},
        "label_rate": 0.05,
    },
    "other": {"alpha": 0.6, "mode": "canary", "share": 0.33, "before": LARGE,
              "service_levels": {"gold": {"alpha": 0.75}}},
    "quiet": {"alpha": 0.6, "mode": "watch", "before": "litellm"},
    "down": {"alpha": 0.6},
}  # fmt: skip


def config(folder: Path) -> dict[str, Any]:
    """Return the configuration whose log is the seeded one."""
    encoder = "tests.support.silent_pairs:SilentPairs"
    prices = {SMALL: 0.01, MEDIUM: 0.03, LARGE: 0.05}
    return proxy_config(folder, CONFIGURED, prices, encoder=encoder)


def command(folder: Path, *arguments: str) -> str:
    """Run `messplus` in this process; return what it printed."""
    result = CliRunner().invoke(app, [*arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return as_text(result.output, folder)


def of_log(folder: Path, name: str, *arguments: str) -> str:
    """Run a command that reads the seeded log."""
    return command(folder, name, *arguments, "--database", "messplus.db")


# What needs no log.


def schema(folder: Path) -> Texts:
    """Record the DDL of a migrated database."""
    asyncio.run(_migrated(folder))
    with sqlite3.connect(folder / "messplus.db") as connection:
        found = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2")
        return {"ddl.sql": "".join(f"-- {kind} {name}\n{sql}\n" for kind, name, sql in found)}


async def _migrated(folder: Path, records: list[Any] | None = None) -> None:
    database = create_engine(url(folder))
    await migrate(database)
    for start in range(0, len(records or []), 50):
        await log.append(database, (records or [])[start : start + 50])
    await database.dispose()


def helps(folder: Path) -> Texts:
    """Record what every command says of itself."""
    names = ["", *_commands(typer.main.get_command(app))]
    found = [f"$ messplus {name} --help\n" + command(folder, *name.split(), "--help")
             for name in names]  # fmt: skip
    return {"help.txt": "\n".join(found)}


def _commands(group: Any, before: str = "") -> Iterator[str]:
    for name, each in sorted(getattr(group, "commands", {}).items()):
        yield f"{before}{name}"
        yield from _commands(each, f"{before}{name} ")


def replays(folder: Path) -> Texts:
    """Record replays of three made-up recordings under each policy."""
    found: Texts = {}
    for name, noise in RECORDINGS.items():
        path = write_csv(folder / f"{name}.csv", list(_recorded(name, noise)))
        for policy in POLICIES:
            options = f"--alpha 0.7 --policy {policy} --seeds 3 --json --V 0.01".split()
            report = command(folder, "replay", str(path), *options)
            found[f"replay_{name}_{policy}.json"] = as_json(_parsed(report.splitlines()[-1]))
    return found


def _recorded(name: str, noise: float) -> Iterator[dict[str, Any]]:
    """Make prompts of three models; the dearer the better, and some words are hard."""
    random = Random(name)
    for number in range(PROMPTS):
        words = random.choices(WORDS, k=6)
        hardness = sum(WORDS.index(word) for word in words) / (6 * len(WORDS))
        row: dict[str, Any] = {"prompt": f"{number}: {' '.join(words)}"}
        for place, model in enumerate(MODELS):
            skill = 0.4 + 0.2 * place + noise * random.uniform(-0.5, 0.5)
            row[f"{model}|satisfied"] = int(skill > hardness)
            row[f"{model}|energy_j"] = round(4.0**place * random.uniform(0.9, 1.1), 3)
        yield row


def folds(folder: Path) -> Texts:
    """Record the state that the seeded log folds into, under each policy."""

    async def fold() -> Texts:
        await _migrated(folder, seeded(still.BEGIN))
        database = create_engine(url(folder))
        found: Texts = {}
        for policy in POLICIES:
            engine = await fold_all(database, build_zoo(policy=policy))
            found[f"state_{policy}.json"] = as_json(digest(snapshot.dump(engine.state)))
        await database.dispose()
        return found

    return asyncio.run(fold())


# What is read of the seeded log, by routes and commands.


def readings(folder: Path) -> Texts:
    """Record what every surface says of the seeded log, the first day of which is pruned."""
    asyncio.run(_migrated(folder, seeded(still.BEGIN)))
    asyncio.run(_states(folder))
    day = (still.BEGIN - timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%S")
    pruned = of_log(folder, "prune", "--before", day)
    found, texts = asyncio.run(_routes(folder))
    commands = _commands_of_log(folder, found)
    routes = {f"routes/{name}.json": as_json(each) for name, each in found.items()}
    overview = found["page_overview"]
    overview["levels"] = changes(found["status"]["levels"], overview["levels"])
    routes["routes/page_overview.json"] = as_json(overview)
    return {"prune.txt": pruned, **routes, **texts, **commands}


async def _states(folder: Path) -> None:
    """Write the states that stand for what is pruned."""
    async with served(config(folder)):
        await asyncio.sleep(30.0)


async def _routes(folder: Path) -> tuple[dict[str, Any], Texts]:
    page, whole = "/messplus/ui/data", {"zoo": "zoo"}
    gets: dict[str, tuple[str, dict[str, Any]]] = {
        "status": ("/messplus/status", {}),
        "health": ("/messplus/health", {}),
        "page_overview": (f"{page}/overview", {}),
        "page_details": (f"{page}/details", PROMISE),
        "page_certificate": (f"{page}/certificate", whole),
        "page_series_newest": (f"{page}/series", {**PROMISE, "zoo": "down"}),
        "page_series_days": (f"{page}/series", {**PROMISE, "days": 3}),
        "page_series_watched": (f"{page}/series", {**PROMISE, "zoo": "quiet", "days": 1}),
        "page_requests": (f"{page}/requests", PROMISE),
        "page_requests_small": (f"{page}/requests", {**PROMISE, "model": SMALL, "before": 2500}),
        "page_requests_explored": (f"{page}/requests", {**PROMISE, "exploration": True}),
        **{f"page_zoo_{zoo}": (f"{page}/zoos/{zoo}", {}) for zoo in CONFIGURED},
        "zoos": ("/messplus/zoos", {}),
        "page_request": (f"{page}/requests/{EXPLAINED[0]}", {}),
        **{f"request_{name}": (f"/messplus/requests/{name}", {}) for name in EXPLAINED},
    }
    async with served(config(folder)) as (_plugin, client):
        await asyncio.sleep(30.0)
        found = {name: await _got(client, path, given) for name, (path, given) in gets.items()}
        described = (await client.get("/openapi.json")).json()
        metrics = (await client.get("/messplus/metrics")).text
    return found, {"openapi.json": as_json(described), "metrics.txt": as_text(metrics, folder)}


async def _got(client: httpx.AsyncClient, path: str, given: dict[str, Any]) -> Any:
    answer = await client.get(path, params=given)
    found = answer.json()
    return found if answer.is_success else {"status": answer.status_code, "answer": found}


def _commands_of_log(folder: Path, routes: dict[str, Any]) -> Texts:
    """Record what is printed; of JSON that a route answers too, where it differs from the route's
    (without the configuration, and some seconds later)."""
    texts: dict[str, tuple[str, ...]] = {
        "status": ("status",),
        "status_full": ("status", "--full", "--window", "100"),
        "requests": ("requests", "--last", "60"),
        "requests_unsatisfied": ("requests", "--unsatisfied"),
        "verify": ("verify",),
        **{f"certificate_{zoo}": ("certificate", zoo) for zoo in CONFIGURED},
        "certificate_trusting": ("certificate", "zoo", "--trust-judge", "--wait", "2",
                                 "--level", "0.9"),
        **{f"explain_{name}": ("requests", name) for name in EXPLAINED},
    }  # fmt: skip
    told: dict[str, tuple[Any, tuple[str, ...]]] = {
        "status": (routes["status"], ("status", "--json")),
        "certificate": (routes["page_certificate"], ("certificate", "zoo", "--json")),
        "explain": (routes["page_request"], ("requests", EXPLAINED[0], "--json")),
    }
    listed = _parsed(of_log(folder, "requests", "--json", "--last", "10"))
    return {
        **{f"commands/{name}.txt": of_log(folder, *given) for name, given in texts.items()},
        "commands/requests.json": as_json(listed),
        **{
            f"commands/{name}.json": as_json(changes(known, _parsed(of_log(folder, *given))))
            for name, (known, given) in told.items()
        },
    }


def _parsed(printed: str) -> Any:
    try:
        return json.loads(printed)
    except ValueError as error:
        raise AssertionError(f"no JSON: {printed}") from error


def log_of_hour(folder: Path) -> Texts:
    """Record all rows after an hour of traffic through the real plugin, and what follows of them
    from the log alone."""
    counted = asyncio.run(hour.run(folder))
    assert asyncio.run(verify(str(folder / "messplus.db"))).faults == ()
    return {
        "hour.jsonl": rows(folder / "messplus.db"),
        "hour_health.json": as_json(counted),
    }


KINDS: tuple[Callable[[Path], Texts], ...] = (
    schema, helps, replays, folds, readings, log_of_hour
)  # fmt: skip
