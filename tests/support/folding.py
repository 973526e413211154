"""Folding a log from its beginning, to hold every other way of getting there against it."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core import snapshot
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.entries import Entry
from litellm_messplus.journal import Journal
from litellm_messplus.learning.learner import Learner
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.settings.zoo import Zoo
from litellm_messplus.store import log
from litellm_messplus.store.entries import read_entries
from tests.support.builders import build_engine


async def fold_all(database: AsyncEngine, zoo: Zoo | None = None) -> Engine:
    """A fresh engine that has read the whole log, entry by entry."""
    engine = build_engine(zoo)
    async for entry in read_entries(database, 0, await log.head(database)):
        if entry.zoo == engine.zoo.name:
            engine.apply(entry)
    return engine


async def read(database: AsyncEngine, after: int, upto: int) -> list[dict[str, Any]]:
    """The entries between two positions, comparable."""
    return [comparable(entry) async for entry in read_entries(database, after, upto)]


def comparable(entry: Entry) -> dict[str, Any]:
    plain = asdict(entry)
    example = plain.get("example") or {}
    for name in ("features", "surface", "answer"):
        if example.get(name) is not None:
            example[name] = example[name].tobytes()
    if example.get("before") is not None:
        example["before"] = (example["before"].candidate, example["before"].answer.tobytes())
    return {"kind": type(entry).__name__, **plain}


def bits(engine: Engine) -> bytes:
    """The whole state of an engine."""
    return snapshot.dump(engine.state)


def taught(engine: Engine) -> dict[str, bytes]:
    """What labels have taught the predictor."""
    return {name: array.tobytes() for name, array in engine.state.policy.arrays().items()}


def only_zoo(engine: Engine) -> Mapping[str, Engine]:
    return {engine.zoo.name: engine}


def build_journal(
    database: AsyncEngine,
    engine: Engine | None = None,
    counters: Counters | None = None,
    **changed: Any,
) -> Journal:
    """A journal that takes no snapshot and keeps no words, unless told otherwise."""
    of_learner: dict[str, Any] = {"snapshot_every": 1_000_000, "position": 0}
    of_learner |= {name: changed.pop(name) for name in of_learner if name in changed}
    how: dict[str, Any] = {"store_text": False, "flush_seconds": 0.01}
    counters = counters or Counters()
    engines = only_zoo(engine or build_engine())
    learner = Learner(database, engines, counters, **of_learner)
    return Journal(learner, counters, **(how | changed))
